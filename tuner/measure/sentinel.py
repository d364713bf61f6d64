"""Runs a known piece of work again and again to see how steady this host is; it measures no model.

One loop is about 5 ms of arithmetic in the first-level cache and one sweep over a larger buffer. It belongs in a
process of its own. Classes follow protocol.md: coefficient of variation under 1% quiet, 3% ok, 8% noisy, else hostile.
"""

import time
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

HostClass = Literal["quiet", "ok", "noisy", "hostile"]

SPINS = 5000
SWEEP_BYTES = 64 * 2**20
_SPIN_DOUBLES = 2048
_LIMITS: tuple[tuple[float, HostClass], ...] = ((0.01, "quiet"), (0.03, "ok"), (0.08, "noisy"))


def run_sentinel(
    repeats: int, *, sweep_bytes: int = SWEEP_BYTES, clock_ns: Callable[[], int] = time.perf_counter_ns
) -> list[float]:
    """Return the seconds of `repeats` loops; the work is the same in every process, so that loops can be compared.

    Args:
        repeats: Loops, at least 1.
        sweep_bytes: Memory read per loop.
        clock_ns: Monotonic nanoseconds.
    """
    small = np.linspace(1.0, 2.0, _SPIN_DOUBLES)
    large = np.ones(max(1, sweep_bytes // 8))
    out = np.empty_like(small)
    large.sum()
    samples: list[float] = []
    for _ in range(repeats):
        started = clock_ns()
        for _ in range(SPINS):
            np.multiply(small, small, out=out)
        large.sum()
        samples.append((clock_ns() - started) / 1e9)
    return samples


def coefficient_of_variation(samples_s: Sequence[float]) -> float:
    """Return the standard deviation over the mean (n - 1 degrees of freedom); 0 for fewer than two samples."""
    values = np.asarray(samples_s, dtype=float)
    return float(values.std(ddof=1) / values.mean()) if len(values) > 1 else 0.0


def host_class(samples_s: Sequence[float]) -> HostClass:
    """Return the class of the host by the coefficient of variation of its sentinel loops."""
    variation = coefficient_of_variation(samples_s)
    return next((name for limit, name in _LIMITS if variation < limit), "hostile")
