"""Quantiles of latencies with distribution-free intervals; it knows nothing of arms, pairs or decisions."""

import math
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np

from tuner.records.measurement import Latency

PERCENTILES: dict[str, float] = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
CLAIM_N = 1000
"""Pooled calls that a claim about p99 needs: ten beyond the percentile."""


def least_n(p: float, alpha: float = 0.05) -> int:
    """Return the least sample size with a finite one-sided upper bound of quantile `p`: ⌈ln alpha / ln p⌉.

    The largest of n values is above the quantile with probability 1 - pⁿ (David & Nagaraja, Order Statistics, 7.1).
    """
    return math.ceil(math.log(alpha) / math.log(p))


def quantile(values: Sequence[float] | np.ndarray, p: float) -> float:
    """Return the quantile `p` by linear interpolation (Hyndman & Fan 1996, definition 7)."""
    return float(np.quantile(np.asarray(values, dtype=float), p))


@cache
def order_interval(n: int, p: float, confidence: float = 0.95) -> tuple[int, int] | None:
    """Return ranks (l, u), from 1, whose order statistics hold quantile `p` with the given confidence, or None.

    P(l ≤ Bin(n, p) < u) ≥ confidence with equal tails (Hahn & Meeker, Statistical Intervals, 5.2); None when a rank
    would fall outside 1..n.
    """
    from scipy.special import bdtr

    tail = (1 - confidence) / 2
    cumulative = bdtr(np.arange(n + 1, dtype=float), n, p)
    low = int(np.searchsorted(cumulative, tail, side="right"))
    high = int(np.searchsorted(cumulative, 1 - tail, side="left")) + 1
    return (low, high) if low >= 1 and high <= n else None


def upper_bound(values: Sequence[float] | np.ndarray, p: float, confidence: float = 0.95) -> float | None:
    """Return the one-sided upper bound of quantile `p` from independent `values`, None under `least_n`."""
    from scipy.special import bdtr

    ordered = np.sort(np.asarray(values, dtype=float))
    cumulative = bdtr(np.arange(len(ordered), dtype=float), len(ordered), p)
    rank = int(np.searchsorted(cumulative, confidence, side="left")) + 1
    return float(ordered[rank - 1]) if rank <= len(ordered) else None


def harrell_davis(values: Sequence[float] | np.ndarray, p: float) -> float:
    """Return the Harrell-Davis (1982) estimate of quantile `p`: all order statistics, weighted by a beta density.

    Equal to `scipy.stats.mstats.hdquantiles`; less variance than one order statistic unless the tail is heavy.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    return float(harrell_davis_weights(len(ordered), p) @ ordered)


@cache
def harrell_davis_weights(n: int, p: float) -> np.ndarray:
    """Return the weight of each of `n` order statistics: increments of Beta((n+1)p, (n+1)(1-p))."""
    from scipy.special import betainc

    weights: np.ndarray = np.diff(betainc((n + 1) * p, (n + 1) * (1 - p), np.linspace(0, 1, n + 1)))
    weights.setflags(write=False)
    return weights


def early_stop_rank(n: int, p: float, confidence: float = 0.99) -> int | None:
    """Return t: the t-th largest of `n` latencies is a conservative estimate of quantile `p`; None if n is too small.

    t is the largest with P(Bin(n, 1-p) ≤ t) ≤ 1 - confidence (MLPerf LoadGen, early_stopping.cc).
    """
    from scipy.special import bdtr

    cumulative = bdtr(np.arange(n + 1, dtype=float), n, 1 - p)
    rank = int(np.searchsorted(cumulative, 1 - confidence, side="right")) - 1
    return rank if rank >= 1 else None


def early_stop_n(p: float, confidence: float = 0.99) -> int:
    """Return the least queries for an early-stopping estimate (MLPerf LoadGen): 64 for p90, 662 for p99."""
    n = 2
    while early_stop_rank(n, p, confidence) is None:
        n += 1
    return n


def latency_summary(blocks: Iterable[Sequence[float]]) -> Latency:
    """Return percentiles, mean and least of the pooled calls of `blocks` (seconds).

    A percentile is null under `least_n` (p99: 299); its interval is given where both ranks exist. Calls of one process
    are not independent, so the intervals describe these runs, not the configuration.
    """
    pooled = np.concatenate([np.asarray(block, dtype=float) for block in blocks] or [np.zeros(0)])
    n = len(pooled)
    if n == 0:
        return Latency()
    ordered = np.sort(pooled)
    known = {name: quantile(ordered, p) for name, p in PERCENTILES.items() if n >= least_n(p)}
    intervals: dict[str, tuple[float, float]] = {}
    for name in known:
        ranks = order_interval(n, PERCENTILES[name])
        if ranks is not None:
            intervals[name] = (float(ordered[ranks[0] - 1]), float(ordered[ranks[1] - 1]))
    return Latency(**known, mean=float(ordered.mean()), min=float(ordered[0]), n=n, ci95=intervals)
