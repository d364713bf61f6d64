"""Decisions from paired log-ratios."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.measure.stats import (
    constraint_held,
    decide,
    is_non_inferior,
    log_ratio,
    mean_interval,
    pairs_for_gain,
    pooled_sd,
    resolvable_gain,
    sign_e_value,
    sign_p_value,
    t_quantile,
    tail_guard,
)


def test_log_ratio_is_of_medians():
    """A spike moves nothing."""
    assert log_ratio([2.0, 2.0, 90.0], [1.0, 1.0, 1.0]) == pytest.approx(math.log(2))


def test_log_ratio_refuses_a_coarse_clock():
    """A zero median has no logarithm."""
    with pytest.raises(ValueError, match="too coarse"):
        log_ratio([0.0, 0.0], [1.0, 1.0])


def test_t_quantile_of_the_first_look():
    """The quantile .989 with 4 degrees of freedom."""
    from scipy.stats import t

    assert t_quantile(0.989, 4) == pytest.approx(float(t.ppf(0.989, 4)))


def test_interval_of_one_pair_is_infinite():
    """One pair says nothing of spread."""
    assert mean_interval([0.1]).low == -math.inf


def test_a_clear_gain_wins():
    """Five pairs at 5% with little spread."""
    assert decide([0.05, 0.051, 0.049, 0.05, 0.052]) == "WIN"


def test_a_gain_below_the_margin_is_not_worthwhile():
    """Five pairs at 0.2%."""
    assert decide([0.002, 0.001, 0.003, 0.002, 0.002]) == "NO_WORTHWHILE_WIN"


def test_a_noisy_gain_is_inconclusive():
    """The lower limit is below the margin, the upper above."""
    assert decide([0.05, -0.03, 0.08, 0.01, 0.02]) == "INCONCLUSIVE"


@given(st.lists(st.floats(-0.3, 0.3), min_size=2, max_size=12))
def test_swapping_the_arms_never_wins_twice(d):
    """Sign symmetry: the two arms cannot both be faster."""
    assert [decide(d), decide([-x for x in d])].count("WIN") < 2


@pytest.mark.parametrize(("wins", "losses", "value"), [(7, 0, 31.9), (9, 0, 102.3), (10, 1, 30.9)])
def test_sign_e_values(wins, losses, value):
    """Figures of method.md 1.2."""
    assert sign_e_value([1.0] * wins + [-1.0] * losses) == pytest.approx(value, abs=0.1)


@pytest.mark.parametrize("n", range(1, 13))
def test_sign_e_value_is_fair(n):
    """Its expectation over fair coins is at most one (exhaustive)."""
    values = [math.comb(n, wins) * sign_e_value([1.0] * wins + [-1.0] * (n - wins)) for wins in range(n + 1)]
    assert sum(values) / 2**n <= 1 + 1e-9


def test_sign_p_value_of_all_wins():
    """Eight of eight is one in 256."""
    assert sign_p_value([1.0] * 8) == pytest.approx(1 / 256)
    assert sign_p_value([-1.0] * 8) == 1.0


@pytest.mark.parametrize(("k", "gain"), [(8, 0.037), (12, 0.030)])
def test_resolvable_gain(k, gain):
    """Spread 2%: 3.7% with 8 pairs, 3.0% with 12 (method.md 1.2)."""
    assert resolvable_gain(0.02, k) == pytest.approx(gain, abs=0.001)


def test_pairs_for_gain_inverts_it():
    """The least number of pairs whose resolvable gain is small enough."""
    k = pairs_for_gain(0.02, 0.03)
    assert resolvable_gain(0.02, k) <= 0.03 < resolvable_gain(0.02, k - 1)
    assert pairs_for_gain(0.5, 0.011) is None


def test_pooled_sd_has_a_floor():
    """Two pairs that happen to agree are no proof of a quiet host."""
    assert pooled_sd([[0.0, 0.0]]) == 0.02
    assert pooled_sd([]) == 0.02
    assert pooled_sd([[0.0, 0.2], [0.1, 0.3]]) == pytest.approx(0.1414, abs=1e-3)


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ([0.03] * 5, "holds"),
        ([0.02, 0.021, 0.02], "holds"),
        ([0.04, 0.041, 0.04], "broken"),
        ([0.02, 0.04, 0.03], "unresolved"),
    ],
)
def test_constraint_is_decided_one_sided(values, state):
    """At most 0.03; exactly met holds."""
    assert constraint_held(values, "<=", 0.03) == state


def test_constraint_of_a_lower_limit():
    """At least 100."""
    assert constraint_held([120.0, 121.0, 119.0], ">=", 100.0) == "holds"
    assert constraint_held([80.0, 81.0, 79.0], ">=", 100.0) == "broken"


def test_one_figure_decides_by_itself():
    """Fidelity is one figure without spread."""
    assert constraint_held([0.99], ">=", 0.99) == "holds"


def test_p99_guard_vetoes_only_shown_harm():
    """Shown growth, no claim from few calls, and a claim from many."""
    grown, same = [math.log(1.3)] * 5, [0.0, 0.01, -0.01, 0.0, 0.005]
    assert tail_guard(grown, 500, least=299, claim=1000) == "harm"
    assert tail_guard(grown, 200, least=299, claim=1000) == "not_resolved"
    assert tail_guard(same, 500, least=299, claim=1000) == "not_resolved"
    assert tail_guard(same, 1500, least=299, claim=1000) == "ok"


def test_non_inferiority_errs_at_most_five_percent():
    """A candidate that loses exactly the limit is accepted in at most 5% of samples."""
    losses = np.random.default_rng(4).normal(0.01, 0.1, size=(2000, 200))
    assert np.mean([is_non_inferior(row, 0.01) for row in losses]) < 0.065


def test_non_inferiority_accepts_no_loss():
    """No loss at all, without spread, is within any limit."""
    assert is_non_inferior([0.0] * 16, 0.0)


def test_group_sequential_level_over_three_looks():
    """Truth exactly at the margin: all three looks together win in at most about 2.5%."""
    d = np.random.default_rng(5).normal(math.log(1.01), 0.02, size=(6000, 12))
    won = np.zeros(len(d), dtype=bool)
    for k in (5, 8, 12):
        low = d[:, :k].mean(axis=1) - t_quantile(0.989, k - 1) * d[:, :k].std(axis=1, ddof=1) / math.sqrt(k)
        won |= low > math.log(1.01)
    assert won.mean() < 0.03


def test_every_order_of_the_pairs_decides_alike():
    """Only the values count, not when they came within a look."""
    d = [0.05, 0.02, 0.04, 0.06]
    assert len({decide(order) for order in itertools.permutations(d)}) == 1
