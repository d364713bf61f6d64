"""Turns a measurement path into one cost per block or per process (lower is better); it decides nothing.

Costs of two arms are compared by ln(cost / cost), so every target is a ratio and the sign is the same for all.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Literal

from tuner.compare.arms import BlockPair, Run
from tuner.errors import HostError, UsageError
from tuner.measure.quantiles import PERCENTILES, harrell_davis
from tuner.records.measurement import Block

Kind = Literal["percentile", "mean", "min", "throughput", "cpu", "memory", "load", "first_call"]

_PATHS: dict[str, Kind] = {
    "latency_s.mean": "mean",
    "latency_s.min": "min",
    "throughput_items_per_s": "throughput",
    "cpu_s_per_item": "cpu",
    "peak_rss_bytes": "memory",
    "load_s": "load",
    "first_call_s": "first_call",
}
_BLOCKWISE: frozenset[Kind] = frozenset({"percentile", "mean", "min", "throughput", "cpu"})


@dataclass(frozen=True)
class Target:
    """A measurement path that can be compared.

    Attributes:
        p: The quantile of ``latency_s.pNN``, None otherwise.
    """

    path: str
    kind: Kind
    p: float | None = None

    @property
    def is_tail(self) -> bool:
        """Return whether it is a percentile above the median."""
        return self.p is not None and self.p > 0.5  # noqa: PLR2004 - the median

    @property
    def is_latency(self) -> bool:
        """Return whether a slower call is a worse result: such targets allow pruning by time."""
        return self.kind in {"percentile", "mean", "min", "throughput"}

    @property
    def is_blockwise(self) -> bool:
        """Return whether one block has a cost of its own; tails, memory and loading belong to a whole process."""
        return self.kind in _BLOCKWISE and not self.is_tail


def target_of(path: str) -> Target:
    """Return the target of a measurement path.

    Raises:
        UsageError: Nothing that compare() times or reads belongs to this path.
    """
    if path.startswith("latency_s.") and path.removeprefix("latency_s.") in PERCENTILES:
        return Target(path, "percentile", PERCENTILES[path.removeprefix("latency_s.")])
    if path in _PATHS:
        return Target(path, _PATHS[path])
    known = ", ".join([*(f"latency_s.{name}" for name in PERCENTILES), *_PATHS])
    raise UsageError(f"{path} cannot be compared between two configurations; use one of {known}")


def block_cost(target: Target, block: Block) -> float:
    """Return the cost of one block: seconds a call, or CPU seconds a call."""
    if target.kind == "throughput":
        return block.wall_s / len(block.latencies_s)
    if target.kind == "cpu":
        return block.cpu_s / len(block.latencies_s)
    if target.kind == "percentile":
        return quantile_cost(block.latencies_s, target.p or 0.5)
    return min(block.latencies_s) if target.kind == "min" else fmean(block.latencies_s)


def quantile_cost(latencies_s: Sequence[float], p: float) -> float:
    """Return the median as it is, a tail by Harrell-Davis."""
    return median(latencies_s) if p == 0.5 else harrell_davis(latencies_s, p)  # noqa: PLR2004 - the median


def run_cost(target: Target, run: Run) -> float:
    """Return the cost of one process over its used blocks.

    Raises:
        HostError: The figure cannot be read on this host.
    """
    if target.kind == "memory":
        peaks = [block.peak_rss_bytes for block in run.used_blocks() if block.peak_rss_bytes is not None]
        if not peaks:
            raise HostError("peak memory cannot be read on this host (no VmHWM in /proc/<pid>/status)")
        return float(max(peaks))
    if target.kind == "load":
        return run.loaded.load_s
    if target.kind == "first_call":
        return run.warmed.first_call_s
    if target.is_tail:
        return quantile_cost(run.latencies_s(), target.p or 0.5)
    return median(block_cost(target, block) for block in run.used_blocks())


def pair_ratio(target: Target, pair: BlockPair) -> float:
    """Return ln(cost of a / cost of b) of one block pair; tails by what its few calls show."""
    if target.kind in {"memory", "load", "first_call"}:
        return math.nan
    return _log_ratio(block_cost(target, pair.a), block_cost(target, pair.b), target)


def process_ratio(target: Target, a: Run, b: Run, pairs: Sequence[BlockPair]) -> float:
    """Return ln(cost of a / cost of b): the median over block pairs, or from the two processes as wholes."""
    if target.is_blockwise and pairs:
        return median(pair_ratio(target, pair) for pair in pairs)
    return _log_ratio(run_cost(target, a), run_cost(target, b), target)


def _log_ratio(above: float, below: float, target: Target) -> float:
    if above <= 0 or below <= 0:
        raise HostError(f"{target.path} reads as zero here: the clock or counter is too coarse for calls this short")
    return math.log(above / below)
