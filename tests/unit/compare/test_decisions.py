"""Verdicts, confirmation and budget arithmetic."""

import math

import pytest

from tuner.compare.arms import ArmCost
from tuner.compare.costs import check_budget, gain_within, least_budget_s, pair_s, reserve_s, warm_cost
from tuner.compare.decisions import confirmation, pairs_to_resolve, speedup_of
from tuner.errors import UsageError
from tuner.measure.plan import block_calls
from tuner.measure.stats import t_quantile

COST = ArmCost(open_s=4.0, warm_s=1.0, call_s=0.05)
PLAN = block_calls(0.05, 0.05)


def test_speedup_is_the_repeated_interval():
    """Mean and t at .989 with K - 1 degrees of freedom, back from logarithms."""
    d = [0.10, 0.12, 0.11, 0.09, 0.13]
    speedup = speedup_of(d)
    sd = math.sqrt(sum((x - 0.11) ** 2 for x in d) / 4)
    assert speedup.ratio == pytest.approx(math.exp(0.11))
    assert speedup.ci95[0] == pytest.approx(math.exp(0.11 - t_quantile(0.989, 4) * sd / math.sqrt(5)))


def test_no_speedup_from_one_pair():
    """One pair has no interval."""
    assert speedup_of([0.1]) is None


def test_pair_cost_is_starts_and_blocks():
    """Two opens, two warm-ups, four pairs of ten calls and 150 ms before each."""
    assert pair_s(COST, COST, PLAN) == pytest.approx(10.0 + 8 * 0.65)


def test_reserve_is_the_first_look():
    """Five pairs; six for tails."""
    assert reserve_s(COST, COST, PLAN) == pytest.approx(5 * 15.2)
    assert reserve_s(COST, COST, block_calls(0.05, 0.05, 0.99)) > 6 * 15.2


def test_a_budget_that_pays_for_five_pairs_is_accepted():
    """Forty percent of it, to the second."""
    least = least_budget_s(COST, PLAN)
    assert least == pytest.approx(190.0)
    assert check_budget(least, COST, PLAN) == pytest.approx(0.4 * least)


def test_a_budget_too_small_names_the_least_that_works():
    """Exit 2, one line."""
    with pytest.raises(UsageError, match="use --budget 190s or more") as raised:
        check_budget(180.0, COST, PLAN)
    assert raised.value.exit_code == 2


def test_a_first_opening_from_a_cold_disk_refuses_no_budget():
    """Ten seconds to open at first, four after it: 300 s are enough, and the reserve is that of later processes."""
    cold = ArmCost(open_s=10.0, warm_s=2.0, call_s=0.05)
    with pytest.raises(UsageError):
        check_budget(300.0, cold, PLAN)
    warm = warm_cost(300.0, cold, PLAN, lambda: COST)
    assert warm == COST
    assert check_budget(300.0, warm, PLAN) == pytest.approx(5 * 15.2)


@pytest.mark.parametrize("budget_s", [30.0, 305.0])
def test_a_first_opening_is_not_doubted_in_vain(budget_s):
    """Calls that alone are too much, or a playoff that is a small part of the budget."""
    assert warm_cost(budget_s, COST, PLAN, lambda: pytest.fail("opened again")) == COST


def test_a_slower_second_opening_changes_nothing():
    """A disturbance of the second is no news of the first."""
    slower = ArmCost(open_s=9.0, warm_s=3.0, call_s=0.06)
    assert warm_cost(200.0, COST, PLAN, lambda: slower) == COST


@pytest.mark.parametrize(
    ("verdict", "answer"),
    [
        ("WIN", "confirmed"),
        ("FEASIBLE_ONLY", "confirmed"),
        ("NO_WORTHWHILE_WIN", "contradicted"),
        ("INCONCLUSIVE", "not_resolved"),
    ],
)
def test_verify_tells_contradicted_from_not_resolved(verdict, answer):
    """A shown lack of gain is another thing than noise."""
    assert confirmation([0.01, 0.02, 0.0], verdict) == answer


def test_verify_says_how_many_pairs_would_resolve_it():
    """A claimed 5% at a spread of 2%."""
    d = [0.05 + 0.02 * sign for sign in (1, -1, 1, -1, 1)]
    assert 5 <= pairs_to_resolve(d, 1.05) <= 12
    assert pairs_to_resolve(d, 1.005) is None


def test_the_gain_a_host_resolves_in_a_time():
    """Eight pairs of 15 s fit in 130 s, twelve in 200 s; nothing in a minute."""
    assert gain_within(0.02, 15.0, 130.0, PLAN) == (pytest.approx(0.0377, abs=1e-3), 8)
    assert gain_within(0.02, 15.0, 200.0, PLAN)[1] == 12
    assert gain_within(0.02, 15.0, 60.0, PLAN) is None
