"""Scores, what is lost of them, and what is no better than chance."""

import numpy as np
import pytest

from tuner.measure.scores import (
    chance_recall,
    cosines,
    hits,
    is_chance,
    macro_f1,
    neighbour_recall,
    paired_loss,
    rows_for_claim,
    spearman,
)
from tuner.measure.stats import is_non_inferior


@pytest.fixture
def random():
    """Return a generator that is the same every time."""
    return np.random.default_rng(7)


def test_hits_are_rows_whose_top_class_is_the_label():
    """One of two is right."""
    assert hits(np.array([[0.1, 0.9], [0.8, 0.2]]), [1, 1]).tolist() == [1.0, 0.0]


def test_macro_f1_weighs_classes_alike():
    """Nine of ten right by always answering one class is an F1 of 0.47."""
    logits = np.tile([1.0, 0.0], (10, 1))
    assert macro_f1(logits, [0] * 9 + [1]) == pytest.approx((18 / 19 + 0) / 2)


def test_spearman_counts_order_alone(random):
    """Any growing function of the cosine correlates fully; a constant score not at all."""
    vectors = random.normal(size=(40, 2, 8))
    values = cosines(vectors)
    assert values[0] == pytest.approx(vectors[0, 0] @ vectors[0, 1] / np.prod(np.linalg.norm(vectors[0], axis=1)))
    assert spearman(values, list(np.exp(5 * values))) == pytest.approx(1)
    assert spearman(values, [3.0] * 40) == 0


def test_recall_of_the_same_vectors_is_full(random):
    """Scaling changes no neighbour."""
    vectors = random.normal(size=(50, 8))
    assert neighbour_recall(vectors, 3 * vectors, 5).tolist() == [1.0] * 50


def test_recall_of_other_vectors_is_chance(random):
    """Unrelated vectors find neighbours as drawing does."""
    one, two = random.normal(size=(300, 8)), random.normal(size=(300, 8))
    assert neighbour_recall(one, two, 10).mean() == pytest.approx(chance_recall(one, 10), abs=0.03)


def test_copies_of_a_text_cost_no_recall(random):
    """Among copies any order is right."""
    vectors = np.repeat(random.normal(size=(10, 8)), 6, axis=0)
    assert neighbour_recall(vectors, vectors + random.normal(size=vectors.shape) * 1e-9, 3).mean() == 1


def test_loss_of_rows_is_their_paired_mean(random):
    """The bound is the one that non-inferiority is decided by."""
    before, after = (random.random(400) < 0.9).astype(float), (random.random(400) < 0.88).astype(float)
    loss = paired_loss(lambda rows: before[rows], lambda rows: after[rows], 400)
    assert loss.loss == pytest.approx(before.mean() - after.mean())
    assert (is_non_inferior(before - after, loss.high + 1e-9), is_non_inferior(before - after, loss.high - 1e-6)) == (
        True,
        False,
    )


def test_interval_of_one_number_agrees_with_that_of_its_rows(random):
    """Leaving parts out gives the spread of a mean."""
    before, after = random.random(640), random.random(640)
    rows = paired_loss(lambda kept: before[kept], lambda kept: after[kept], 640)
    one = paired_loss(lambda kept: float(before[kept].mean()), lambda kept: float(after[kept].mean()), 640)
    assert (one.loss, one.high - one.loss) == (rows.loss, pytest.approx(rows.high - rows.loss, rel=0.3))


def test_bound_covers_the_true_loss(random):
    """A one-sided 95% bound of a correlation misses what is lost in about one of twenty samples."""
    misses = 0
    for _ in range(60):
        truth = random.normal(size=200)
        before, after = truth + random.normal(size=200), truth + 1.2 * random.normal(size=200)
        loss = paired_loss(
            lambda kept, x=before, y=truth: float(np.corrcoef(x[kept], y[kept])[0, 1]),
            lambda kept, x=after, y=truth: float(np.corrcoef(x[kept], y[kept])[0, 1]),
            200,
        )
        misses += loss.high < 1 / np.sqrt(2) - 1 / np.sqrt(2.44)
    assert misses <= 8


def test_equal_outputs_lose_nothing():
    """Without any difference the bound is zero."""
    values = np.arange(20.0)
    assert paired_loss(lambda rows: values[rows], lambda rows: values[rows], 20).high == 0


@pytest.mark.parametrize(("share", "expected"), [(0.95, False), (0.5, True)])
def test_chance_is_what_shuffled_rows_reach(random, share, expected):
    """A coin is chance, nineteen of twenty are not."""
    labels = random.integers(0, 2, 200)
    predicted = np.where(random.random(200) < share, labels, 1 - labels)
    assert is_chance(lambda order: float((predicted[order] == labels).mean()), 200) is expected


def test_what_no_shuffle_changes_is_not_known():
    """A constant score says nothing of chance."""
    assert is_chance(lambda _: 0.5, 30) is None


@pytest.mark.parametrize(("limit", "scale", "rows"), [(0.01, 1, 299), (0.05, 1, 59), (1, 90, 269), (0, 1, None)])
def test_rows_that_a_claim_needs(limit, scale, rows):
    """A flaw in 1% of the traffic is missed by fewer than 299 rows too often."""
    assert rows_for_claim(limit, scale) == rows
