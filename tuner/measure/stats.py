"""Decisions from paired log-ratios of process pairs: intervals, sequential looks, cross-checks; it measures nothing.

Everywhere d_k = ln(baseline / candidate) of process pair k, so positive is faster; ln and expm1 turn gains and ratios.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Vector = Sequence[float] | np.ndarray
Decision = Literal["WIN", "NO_WORTHWHILE_WIN", "INCONCLUSIVE"]

MARGIN = 0.01
"""Gain that is worth a change of configuration."""
LOOK_ALPHA = 0.011
"""One-sided nominal level of each of three looks: Pocock 1977 spends .025 over all."""


@dataclass(frozen=True)
class Interval:
    """Mean of K log-ratios with its two-sided limits, each of the nominal one-sided level."""

    mean: float
    low: float
    high: float
    sd: float
    k: int


def log_ratio(numerator: Vector, denominator: Vector) -> float:
    """Return ln(median / median) of two blocks.

    Raises:
        ValueError: A median is not positive: the clock is too coarse for the call.
    """
    above, below = float(np.median(numerator)), float(np.median(denominator))
    if above <= 0 or below <= 0:
        raise ValueError("a median latency is zero: the clock is too coarse for calls this short")
    return math.log(above / below)


def t_quantile(probability: float, df: float) -> float:
    """Return the quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))


def mean_interval(d: Vector, alpha: float = LOOK_ALPHA) -> Interval:
    """Return mean ± t_{1-alpha, K-1}·s/√K (Kalibera & Jones 2013: processes are the unit); infinite for K = 1."""
    values = np.asarray(d, dtype=float)
    k = len(values)
    mean = float(values.mean())
    if k < 2:  # noqa: PLR2004 - no spread from one value
        return Interval(mean, -math.inf, math.inf, math.inf, k)
    sd = float(values.std(ddof=1))
    half = t_quantile(1 - alpha, k - 1) * sd / math.sqrt(k)
    return Interval(mean, mean - half, mean + half, sd, k)


def decide(d: Vector, *, margin: float = MARGIN, alpha: float = LOOK_ALPHA) -> Decision:
    """Decide one look of the group-sequential t test (looks 5, 8, 12; tails 6, 10, 16).

    WIN if the lower limit is above ln(1 + margin), NO_WORTHWHILE_WIN if the upper limit is below it. (Jennison &
    Turnbull, Group Sequential Methods, ch. 2 and 11.)
    """
    interval = mean_interval(d, alpha)
    if interval.low > math.log1p(margin):
        return "WIN"
    return "NO_WORTHWHILE_WIN" if interval.high < math.log1p(margin) else "INCONCLUSIVE"


def sign_e_value(d: Vector, *, margin: float = MARGIN) -> float:
    """Return the e-value of the signs of d_k - ln(1 + margin) against fair coins, anytime valid.

    Uniform mixture over p in (1/2, 1]: E = 2·B(S+1, n-S+1)·(1 - I_½(S+1, n-S+1))·2ⁿ (Howard & Ramdas 2022). Random
    order of arms makes the signs fair coins whatever the noise. 40 is evidence at one-sided .025.
    """
    from scipy.special import betainc, betaln

    n = len(d)
    wins = int(np.sum(np.asarray(d, dtype=float) > math.log1p(margin)))
    tail = 1 - float(betainc(wins + 1, n - wins + 1, 0.5))
    return 2 * math.exp(float(betaln(wins + 1, n - wins + 1)) + n * math.log(2)) * tail


def sign_p_value(d: Vector, *, margin: float = MARGIN) -> float:
    """Return the one-sided p-value of the sign test of median d ≤ ln(1 + margin)."""
    from scipy.special import bdtrc

    n = len(d)
    wins = int(np.sum(np.asarray(d, dtype=float) > math.log1p(margin)))
    return 1.0 if wins == 0 else float(bdtrc(wins - 1, n, 0.5))


def resolvable_gain(
    sd: float, k: int, *, margin: float = MARGIN, alpha: float = LOOK_ALPHA, power: float = 0.8
) -> float | None:
    """Return the smallest gain (ratio - 1) that `k` pairs of spread `sd` find with the given power, None for k < 2.

    ln(1 + margin) + (t_{1-alpha} + t_{power})·s/√K (method.md 1.2; Cohen 1988, ch. 2).
    """
    if k < 2 or not math.isfinite(sd):  # noqa: PLR2004 - no spread from one value
        return None
    width = (t_quantile(1 - alpha, k - 1) + t_quantile(power, k - 1)) * sd / math.sqrt(k)
    return math.expm1(math.log1p(margin) + width)


def pairs_for_gain(sd: float, gain: float, *, margin: float = MARGIN, most: int = 1000) -> int | None:
    """Return the least number of pairs that resolve `gain` (ratio - 1) with 80% power, None above `most`."""
    for k in range(2, most + 1):
        resolved = resolvable_gain(sd, k, margin=margin)
        if resolved is not None and resolved <= gain:
            return k
    return None


def pooled_sd(groups: Sequence[Vector], *, floor: float = 0.02) -> float:
    """Return the standard deviation within groups, pooled over all of two values and more, at least `floor`."""
    arrays = [np.asarray(group, dtype=float) for group in groups if len(group) > 1]
    df = sum(len(array) - 1 for array in arrays)
    if df == 0:
        return floor
    return max(floor, math.sqrt(sum(float(array.var(ddof=1)) * (len(array) - 1) for array in arrays) / df))


def is_non_inferior(loss: Vector, limit: float, *, alpha: float = 0.05) -> bool:
    """Say whether the mean paired loss per sample (reference - candidate) is shown to be within `limit`.

    mean + t_{1-alpha, N-1}·s/√N ≤ limit; a loss exactly at the limit without spread holds.
    """
    interval = mean_interval(loss, alpha)
    return interval.high <= limit


Held = Literal["holds", "broken", "unresolved"]


def constraint_held(values: Vector, operator: Literal["<=", ">="], bound: float, *, alpha: float = 0.05) -> Held:
    """Decide a constraint from one figure per process by one-sided bounds; exactly met holds.

    Returns:
        ``holds`` if the bound on the bad side keeps the limit, ``broken`` if the one on the good side misses it.
    """
    sign = 1.0 if operator == "<=" else -1.0
    interval = mean_interval(sign * np.asarray(values, dtype=float), alpha)
    if interval.k == 1:
        return "holds" if interval.mean <= sign * bound else "broken"
    if interval.high <= sign * bound:
        return "holds"
    return "broken" if interval.low > sign * bound else "unresolved"


def tail_guard(
    log_harm: Vector, n_calls: int, *, least: int, claim: int, limit: float = 0.10, alpha: float = 0.05
) -> Literal["ok", "harm", "not_resolved"]:
    """Decide the p99 guard from ln(candidate / baseline) of p99 per pair: it vetoes only shown harm.

    Args:
        log_harm: One value per process pair.
        n_calls: Pooled calls of the arm that has fewer.
        least: Calls under which nothing is said (299).
        claim: Calls from which an absence of harm may be claimed (1000).
        limit: Tolerated growth.
        alpha: One-sided level.
    """
    if n_calls < least or len(log_harm) < 2:  # noqa: PLR2004 - no spread from one value
        return "not_resolved"
    interval = mean_interval(log_harm, alpha)
    if interval.low > math.log1p(limit):
        return "harm"
    return "ok" if n_calls >= claim and interval.high <= math.log1p(limit) else "not_resolved"
