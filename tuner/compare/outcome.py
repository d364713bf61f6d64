"""What one trial found, as a record in memory; it measures nothing."""

from dataclasses import dataclass
from typing import Literal

from tuner.compare.arms import ArmCost
from tuner.messages import Loaded, Warmed
from tuner.records.config import Config
from tuner.records.measurement import Block, Failure, Fidelity, Measurement


@dataclass(frozen=True)
class TrialOutcome:
    """What one trial found.

    Attributes:
        state: ``measured``; ``pruned`` (stopped early, `value` is an estimate); ``failed`` (see `failure`).
        value: ln(cost / cost of the anchor), lower is better, on the scale of the study's first anchor; None if failed.
        ratios: ln(cost / cost) of every used block pair, raw.
        candidate_blocks: Every block, redone ones included (``is_used`` false).
        anchor_blocks: The same of the anchor.
        anchor_id: The anchor's process; None where the trial failed before it was needed.
        measurement: Pooled figures of the used blocks, None if failed or dominated.
        stopped_early: Fidelity: the quick look refused the candidate.
        cost: What another process of this configuration will cost.
        measure_s: Seconds this trial took on the bench.
        low_confidence: The gate had been given up.
    """

    config: Config
    state: Literal["measured", "pruned", "failed"]
    measure_s: float
    value: float | None = None
    ratios: tuple[float, ...] = ()
    candidate_blocks: tuple[Block, ...] = ()
    anchor_blocks: tuple[Block, ...] = ()
    anchor_id: str | None = None
    loaded: Loaded | None = None
    warmed: Warmed | None = None
    measurement: Measurement | None = None
    fidelity: Fidelity | None = None
    stopped_early: bool = False
    failure: Failure | None = None
    cost: ArmCost | None = None
    low_confidence: bool = False

    @property
    def is_estimate(self) -> bool:
        """Return whether the value comes from a trial that was stopped early."""
        return self.state == "pruned"
