"""What a playoff costs, from measured times of its arms, and whether a budget allows it; it runs nothing."""

import math

from tuner.compare.arms import ArmCost
from tuner.errors import UsageError
from tuner.measure.plan import BlockPlan
from tuner.measure.stats import resolvable_gain

RESERVE_SHARE = 0.40


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


def check_budget(budget_s: float, cost: ArmCost, plan: BlockPlan) -> float:
    """Return the reserve of a playoff in seconds.

    Args:
        budget_s: Of the whole run.
        cost: Of the baseline, from its first opening.
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
