"""How many calls, blocks and process pairs a comparison needs, from the time of a call; it times nothing."""

import math

from tuner.measure.quantiles import least_n
from tuner.records.base import Record

BLOCK_FAST_S = 0.5
BLOCK_SLOW_S = 1.0
LEAST_CALLS = 10
QUICK_CALLS = 3
LOOKS = (5, 8, 12)
TAIL_LOOKS = (6, 10, 16)


class BlockPlan(Record):
    """Numbers of protocol step 4.

    Attributes:
        n: Timed calls of one block, the same in both arms.
        discard_calls: Least calls discarded before a block.
        discard_s: Least seconds discarded before a block.
        blocks: Block pairs of one process pair in a playoff; a trial takes min(2, blocks).
        warm_calls: Warm calls of a slow model, None for the usual windows.
        use_anchor: False where a call is so slow that a resident anchor would double the cost of a trial.
        looks: Process pairs at which a playoff looks.
    """

    n: int
    discard_calls: int = 3
    discard_s: float = 0.05
    blocks: int = 4
    warm_calls: int | None = None
    use_anchor: bool = True
    looks: tuple[int, ...] = LOOKS

    def trial_blocks(self) -> int:
        """Return the block pairs of a trial."""
        return min(2, self.blocks)

    def block_s(self, call_s: float) -> float:
        """Return the seconds of one block of an arm whose call takes `call_s`, discarded calls included."""
        discard_s = max(self.discard_calls * call_s, self.discard_s) if self.discard_calls else 0.0
        return self.n * call_s + discard_s


def slow_warm_calls(call_s: float) -> int | None:
    """Return the warm calls of a slow model: one at 5 s a call, two at 0.5 s, None below (windows decide)."""
    if call_s >= 5.0:  # noqa: PLR2004 - protocol step 4
        return 1
    return 2 if call_s >= 0.5 else None  # noqa: PLR2004 - protocol step 4


def block_calls(t_fast_s: float, t_slow_s: float, percentile: float | None = None) -> BlockPlan:
    """Return the plan of protocol step 4 for two arms.

    n = max(10, min(⌈0.5 s / t_fast⌉, ⌈1 s / t_slow⌉)); the slow-model rules go by the slower arm. For a tail target a
    process has at least the calls that its percentile needs (p99: 299), and looks come later.

    Args:
        t_fast_s: Call of the faster arm.
        t_slow_s: Call of the slower arm.
        percentile: 0.9, 0.95 or 0.99 for tail targets, None otherwise.
    """
    fast, slow = max(t_fast_s, 1e-9), max(t_slow_s, 1e-9)
    n = min(math.ceil(BLOCK_FAST_S / fast), math.ceil(BLOCK_SLOW_S / slow))
    if slow >= 5.0:  # noqa: PLR2004 - protocol step 4
        return BlockPlan(n=1, discard_calls=0, discard_s=0.0, blocks=1, warm_calls=1, use_anchor=False, looks=LOOKS[:1])
    looks = LOOKS if percentile is None else TAIL_LOOKS
    if slow >= 0.5:  # noqa: PLR2004 - protocol step 4
        return BlockPlan(n=2, discard_calls=1, discard_s=0.0, blocks=2, warm_calls=2, looks=looks)
    n = max(QUICK_CALLS if slow >= 0.15 else LEAST_CALLS, n)  # noqa: PLR2004 - protocol step 4
    if percentile is not None:
        n = max(n, math.ceil(least_n(percentile) / 4))
    return BlockPlan(n=n, looks=looks)
