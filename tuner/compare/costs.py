"""What a playoff costs, from measured times of its arms, and whether a budget allows it; it runs nothing."""

import math
from collections.abc import Callable

from tuner.compare.arms import ArmCost
from tuner.errors import UsageError
from tuner.measure.plan import BlockPlan
from tuner.measure.stats import resolvable_gain

RESERVE_SHARE = 0.40
"""Of the budget, at most, for the first look of the playoff."""
DOUBTFUL_SHARE = 0.25
"""Of the budget: a first look that seems to take more has its first opening doubted."""


def pair_s(a: ArmCost, b: ArmCost, plan: BlockPlan) -> float:
    """Return the seconds of one process pair: both opened and warmed, and its block pairs."""
    starts = a.open_s + a.warm_s + b.open_s + b.warm_s
    return starts + plan.blocks * (plan.block_s(a.call_s) + plan.block_s(b.call_s))


def reserve_s(a: ArmCost, b: ArmCost, plan: BlockPlan) -> float:
    """Return the seconds of a playoff's first look, to be kept free from the start."""
    return plan.looks[0] * pair_s(a, b, plan)


def gain_within(sd: float, one_pair_s: float, seconds: float, plan: BlockPlan) -> tuple[float, int] | None:
    """Return the smallest gain (ratio - 1) that a playoff of `seconds` resolves with 80% power, and its pairs.

    Args:
        sd: Of the pairs' log-ratios on this host.
        one_pair_s: Seconds of one process pair.
        seconds: For the playoff.
        plan: Gives the looks; the last that fits counts.

    Returns:
        None if not even the first look fits.
    """
    looks = [look for look in plan.looks if look * one_pair_s <= seconds]
    if not looks:
        return None
    gain = resolvable_gain(sd, looks[-1])
    return None if gain is None else (gain, looks[-1])


def least_budget_s(cost: ArmCost, plan: BlockPlan) -> float:
    """Return the least budget whose 40% pay for the first look, the candidate costing what the baseline costs."""
    return reserve_s(cost, cost, plan) / RESERVE_SHARE


def warm_cost(budget_s: float, first: ArmCost, plan: BlockPlan, open_again: Callable[[], ArmCost]) -> ArmCost:
    """Return what a process of the baseline costs once its files are in memory.

    A first opening on a fresh machine reads engine and model from the disk and may take three times as long as any
    after it. Where such starts would make the playoff a large part of the budget, the baseline is opened once more;
    not where its calls alone are too much.

    Args:
        budget_s: Of the whole run.
        first: Measured at the first opening.
        plan: Numbers of its blocks.
        open_again: Opens and warms another process, closes it and returns its cost.
    """
    calls_only = ArmCost(open_s=0.0, warm_s=0.0, call_s=first.call_s)
    is_hopeless = budget_s < least_budget_s(calls_only, plan)
    if is_hopeless or reserve_s(first, first, plan) <= DOUBTFUL_SHARE * budget_s:
        return first
    again = open_again()
    return ArmCost(
        open_s=min(first.open_s, again.open_s),
        warm_s=min(first.warm_s, again.warm_s),
        call_s=min(first.call_s, again.call_s),
    )


def check_budget(budget_s: float, cost: ArmCost, plan: BlockPlan) -> float:
    """Return the reserve of a playoff in seconds.

    Args:
        budget_s: Of the whole run.
        cost: Of the baseline.
        plan: Numbers of its blocks.

    Raises:
        UsageError: The first look would take more than 40% of the budget; names the least budget that works.
    """
    least = least_budget_s(cost, plan)
    if budget_s < least:
        raise UsageError(
            f"--budget {budget_s:.0f}s is too small: {plan.looks[0]} pairs of fresh processes, at most 40% of it, "
            f"take {reserve_s(cost, cost, plan):.0f} s here; use --budget {math.ceil(least)}s or more"
        )
    return reserve_s(cost, cost, plan)
