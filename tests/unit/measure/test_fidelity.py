"""Closeness of outputs."""

import numpy as np
import pytest

from tuner.measure.fidelity import (
    Incorrect,
    check_output,
    compare_classes,
    compare_embedding,
    compare_graph,
    misses_default_limit,
    verify_samples,
    wilson_interval,
)
from tuner.records.measurement import Fidelity

RNG = np.random.default_rng(0)


def vectors(n=16, d=8):
    """Return n samples of one row each."""
    return [RNG.normal(size=(1, d)).astype(np.float32) for _ in range(n)]


def test_equal_embeddings_have_cosine_one():
    """A copy is as close as can be."""
    rows = vectors()
    fidelity = compare_embedding(rows, rows)
    assert (fidelity.cosine_min, fidelity.n, fidelity.method) == (pytest.approx(1.0), 16, "embedding")
    assert fidelity.rel_error_max == pytest.approx(0.0)


def test_the_worst_row_counts():
    """One opposite vector among many is the least cosine."""
    rows = vectors()
    other = [*rows[:-1], -rows[-1]]
    assert compare_embedding(rows, other).cosine_min == pytest.approx(-1.0)


def test_rows_of_a_batch_count_one_by_one():
    """A batch of two samples is two rows."""
    rows = [np.ones((2, 4), np.float32)]
    assert compare_embedding(rows, rows).n == 2


def test_zero_vectors_are_compared_without_division():
    """Two zero vectors are equal; one is as far as can be."""
    zero, one = [np.zeros((1, 3))], [np.ones((1, 3))]
    assert compare_embedding(zero, zero).cosine_min == 1.0
    assert compare_embedding(zero, one).cosine_min == 0.0


def test_token_figures_are_details():
    """Per-token cosines are reported beside the gated figures."""
    rows = vectors()
    details = compare_embedding(rows, rows, tokens=(rows, rows)).details
    assert details["token_cosine_min"] == pytest.approx(1.0)


def test_least_cosine_states_the_share_it_covers():
    """With 95% confidence 59 samples cover 95% of the traffic."""
    rows = vectors(59)
    assert compare_embedding(rows, rows).details["share_covered"] == pytest.approx(0.95, abs=0.001)


def test_classes_agree_by_top_class():
    """One of four differs."""
    logits = [np.array([[3.0, 1.0]])] * 4
    other = [*logits[:3], np.array([[1.0, 3.0]])]
    fidelity = compare_classes(logits, other)
    assert fidelity.top1_agreement == 0.75
    assert fidelity.details["top1_agreement_low"] < 0.75 < fidelity.details["top1_agreement_high"]


def test_kl_ignores_a_constant_shift():
    """Logits are known up to a constant."""
    logits = [np.array([[3.0, 1.0, 0.5]])]
    assert compare_classes(logits, [logits[0] + 7]).kl_mean == pytest.approx(0.0, abs=1e-12)


def test_graph_takes_the_worst_output():
    """Two outputs, one off by 10%."""
    good = {"x": np.ones(4), "y": np.full(4, 10.0)}
    off = {"x": np.ones(4), "y": np.full(4, 11.0)}
    fidelity = compare_graph([good, good], [good, off])
    assert (fidelity.rel_error_max, fidelity.abs_error_max) == (pytest.approx(0.1), pytest.approx(1.0))


def test_graph_of_integers():
    """Token ids compare like numbers."""
    ids = {"ids": np.array([1, 2, 3])}
    assert compare_graph([ids], [ids]).rel_error_max == 0.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_incorrect(bad):
    """No tolerance makes NaN right."""
    with pytest.raises(Incorrect, match="not finite"):
        check_output("x", np.ones(3), np.array([1.0, bad, 1.0]))


def test_a_wrong_shape_is_incorrect():
    """The message names both shapes."""
    with pytest.raises(Incorrect, match=r"\(2,\), expected \(3,\)"):
        check_output("x", np.ones(3), np.ones(2))


def test_a_wrong_kind_of_dtype_is_incorrect():
    """Integers where floats were expected."""
    with pytest.raises(Incorrect, match="int64"):
        check_output("x", np.ones(3), np.ones(3, dtype=np.int64))


def test_a_narrower_float_is_allowed():
    """A float16 answer is judged by its values."""
    check_output("x", np.ones(3, np.float32), np.ones(3, np.float16))


def test_a_missing_output_is_incorrect():
    """The message names what there is."""
    with pytest.raises(Incorrect, match="'x' is missing; the candidate has y"):
        compare_graph([{"x": np.ones(1)}], [{"y": np.ones(1)}])


def test_incorrect_is_a_value_error():
    """Callers that know nothing of it still catch it."""
    assert issubclass(Incorrect, ValueError)


def figures(cosine):
    """Return a function of the number of samples that counts its calls."""
    seen = []

    def of(n):
        seen.append(n)
        return Fidelity(cosine_min=cosine, n=n, method="embedding")

    return of, seen


def test_a_hopeless_quick_look_ends_the_check():
    """A cosine of 0.5 on 64 samples needs no 192 more."""
    of, seen = figures(0.5)
    verified = verify_samples(256, 64, of, misses_default_limit)
    assert (verified.stopped_early, verified.fidelity.n, seen) == (True, 64, [64])


def test_a_good_quick_look_goes_on_to_the_whole_set():
    """The decision is on N samples."""
    of, seen = figures(0.999)
    assert verify_samples(256, 64, of, misses_default_limit).fidelity.n == 256
    assert seen == [64, 256]


def test_a_small_set_is_looked_at_once():
    """Sixteen samples are quick look and decision."""
    of, seen = figures(0.5)
    assert not verify_samples(16, 64, of, misses_default_limit).stopped_early
    assert seen == [16]


def test_agreement_is_hopeless_only_beyond_its_interval():
    """63 of 64 may still be 99%; 50 of 64 may not."""
    for agree, hopeless in ((63, False), (50, True)):
        logits = [np.array([[1.0, 0.0]])] * 64
        other = [np.array([[1.0, 0.0] if i < agree else [0.0, 1.0]]) for i in range(64)]
        assert misses_default_limit(compare_classes(logits, other)) is hopeless


def test_wilson_interval():
    """Known figures: 0 of 10 and 10 of 10."""
    assert wilson_interval(0, 10) == (0.0, pytest.approx(0.2775, abs=1e-3))
    assert wilson_interval(10, 10)[0] == pytest.approx(0.7225, abs=1e-3)


def test_scores_are_compared_by_their_order():
    """With one class there is no other to choose: pairs of samples count, equal scores count as wrong."""
    reference = [np.array([[score]], np.float32) for score in (0.0, 1.0, 2.0, 3.0)]
    shifted = [2 * score + 5 for score in reference]
    swapped = [reference[1], reference[0], *reference[2:]]
    same = [np.zeros((1, 1), np.float32)] * 4
    found = [compare_classes(reference, other).top1_agreement for other in (shifted, swapped, same)]
    assert found == [1.0, pytest.approx(5 / 6), 0.0]
