"""Pools the processes of one configuration into a Measurement; it judges nothing."""

from collections.abc import Sequence
from statistics import median

from tuner.compare.arms import Run
from tuner.measure.quantiles import latency_summary
from tuner.records.measurement import Fidelity, Measurement, Notice

_LABELS = {
    "slowdown": ("slowdown", "calls became slower during warm-up", "look for throttling, or a cache that grows"),
    "no_steady": ("no_steady_state", "warm-up never became steady", "expect wider intervals; see `autotune doctor`"),
}


def measurement_of(
    runs: Sequence[Run], *, items_per_batch: int = 1, fidelity: Fidelity | None = None, low_confidence: bool = False
) -> Measurement:
    """Return what the used blocks of `runs` say together; percentiles are null under their least n.

    Args:
        runs: Processes of one configuration, at least one.
        items_per_batch: Rows of one call.
        fidelity: As measured in one of them.
        low_confidence: The gate had been given up.
    """
    blocks = [block for run in runs for block in run.used_blocks()]
    calls = sum(len(block.latencies_s) for block in blocks)
    wall_s = sum(block.wall_s for block in blocks)
    cpu_s = sum(block.cpu_s for block in blocks)
    peaks = [block.peak_rss_bytes for block in blocks if block.peak_rss_bytes is not None]
    return Measurement(
        latency_s=latency_summary(block.latencies_s for block in blocks),
        throughput_items_per_s=calls * items_per_batch / wall_s if wall_s > 0 else None,
        load_s=median(run.loaded.load_s for run in runs),
        first_call_s=median(run.warmed.first_call_s for run in runs),
        peak_rss_bytes=max(peaks, default=None),
        cpu_s_per_item=cpu_s / (calls * items_per_batch) if calls else None,
        fidelity=fidelity,
        effective=runs[-1].loaded.effective,
        notices=_notices(runs, low_confidence=low_confidence),
    )


def _notices(runs: Sequence[Run], *, low_confidence: bool) -> tuple[Notice, ...]:
    notices = []
    for kind, (code, detail, remedy) in _LABELS.items():
        seen = sum(run.warmed.kind == kind for run in runs)
        if seen:
            notices.append(Notice(code=code, detail=f"{detail} in {seen} of {len(runs)} processes", remedy=remedy))
    throttled = sum(
        block.telemetry.throttled_s or 0.0 for run in runs for block in run.used_blocks() if block.telemetry
    )
    if throttled > 0:
        detail = f"the CPU quota stopped the worker for {throttled:.3f} s of the timed blocks"
        notices.append(Notice(code="throttled", detail=detail, remedy="raise the quota or use fewer threads"))
    if low_confidence:
        detail = "more than 30% of the block pairs were disturbed; blocks are no longer refused"
        notices.append(Notice(code="low_confidence", detail=detail, remedy="quieten the host; see `autotune doctor`"))
    return tuple(notices)
