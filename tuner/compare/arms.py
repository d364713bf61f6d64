"""What one process of a comparison did, and pairs of its blocks; it opens and times nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tuner.messages import Loaded, Warmed
from tuner.records.config import Config
from tuner.records.measurement import Block

Side = Literal["a", "b"]


@dataclass
class Run:
    """One process: opened, warmed, timed in blocks; ``a`` is the candidate, ``b`` the anchor or baseline.

    Attributes:
        open_s: From the start of the process until the model was loaded, as the parent saw it.
        blocks: Every block in order of time, redone ones included.
    """

    side: Side
    arm_id: str
    config: Config
    loaded: Loaded
    warmed: Warmed
    open_s: float
    blocks: list[Block] = field(default_factory=list)

    def used_blocks(self) -> list[Block]:
        """Return the blocks that count."""
        return [block for block in self.blocks if block.is_used]

    def latencies_s(self) -> list[float]:
        """Return all calls of the blocks that count."""
        return [latency for block in self.used_blocks() for latency in block.latencies_s]

    @property
    def call_s(self) -> float:
        """Return the seconds of a call for planning: the least window median, so that a disturbance plans nothing."""
        return min((self.warmed.call_s, *self.warmed.windows_s))

    def cost(self) -> "ArmCost":
        """Return what another process of this configuration will cost."""
        return ArmCost(open_s=self.open_s, warm_s=self.warmed.wall_s, call_s=self.call_s)


@dataclass(frozen=True)
class BlockPair:
    """Two blocks of the same number of calls, next to each other in time."""

    a: Block
    b: Block

    @property
    def is_dirty(self) -> bool:
        """Return whether the gate refused one of them."""
        return bool(self.a.dirty or self.b.dirty)


@dataclass(frozen=True)
class ArmCost:
    """Measured seconds of one process: to open it, to warm it, of one warm call."""

    open_s: float
    warm_s: float
    call_s: float


def mark_unused(run: Run, blocks: Sequence[Block]) -> None:
    """Keep `blocks` in the record of `run`, but out of every result."""
    orders = {block.order for block in blocks}
    run.blocks[:] = [
        block.model_copy(update={"is_used": False}) if block.order in orders else block for block in run.blocks
    ]
