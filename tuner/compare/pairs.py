"""Interleaves blocks of two processes and redoes dirty pairs whole: the one mechanism below trial, race and playoff."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from tuner.compare.arms import BlockPair, Run, Side, mark_unused
from tuner.compare.protocols import Arm
from tuner.compare.rig import Rig
from tuner.compare.targets import process_ratio
from tuner.errors import TrialError
from tuner.measure.plan import BlockPlan
from tuner.records.config import Config
from tuner.records.measurement import Block

Arms = Mapping[Side, tuple[Arm, Run]]


class ArmFailed(Exception):  # noqa: N818 - says which arm a TrialError belongs to; never leaves this package
    """One of two arms failed."""

    def __init__(self, side: Side, error: TrialError) -> None:
        super().__init__(str(error))
        self.side: Side = side
        self.error = error


@dataclass(frozen=True)
class ProcessPair:
    """Two processes, interleaved.

    Attributes:
        log_ratio: ln(cost of a / cost of b); d of the playoff is its negative.
        first: The side that was started first.
    """

    a: Run
    b: Run
    pairs: tuple[BlockPair, ...]
    plan: BlockPlan
    log_ratio: float
    first: Side


def pair_blocks(
    rig: Rig,
    arms: Arms,
    plan: BlockPlan,
    n_pairs: int,
    *,
    is_enough: Callable[[list[BlockPair]], bool] = lambda _: False,
) -> list[BlockPair]:
    """Run up to `n_pairs` block pairs in random ABBA or BAAB order; stop early when `is_enough` says so.

    Raises:
        ArmFailed: A worker died or failed; the blocks so far stay in its run.
    """
    pairs: list[BlockPair] = []
    for number, order in enumerate(rig.orders(n_pairs)):
        pairs.append(_pair(rig, arms, plan, order, number))
        if is_enough(pairs):
            break
    return pairs


def fresh_pair(
    rig: Rig, a: Config, b: Config, *, plan: BlockPlan | None = None, n_pairs: int | None = None, in_turn: bool = False
) -> ProcessPair:
    """Compare two configurations once, each in a fresh process; a coin says which is started first.

    Args:
        rig: The bench.
        a: The candidate.
        b: The baseline.
        plan: Numbers of the blocks; None takes them from the warm-up of these two.
        n_pairs: Block pairs; None takes the plan's.
        in_turn: Run one process after the other (they do not fit in memory together).

    Raises:
        ArmFailed: One of them failed; both are closed.
    """
    first: Side = "a" if rig.random.random() < 0.5 else "b"  # noqa: PLR2004 - a fair coin
    sides: tuple[Side, Side] = ("a", "b") if first == "a" else ("b", "a")
    configs: dict[Side, Config] = {"a": a, "b": b}
    if in_turn:
        return _in_turn(rig, configs, sides, plan, n_pairs)
    with ExitStack() as stack:
        arms: dict[Side, tuple[Arm, Run]] = {}
        for side in sides:
            arms[side] = start(rig, configs[side], side)
            stack.callback(arms[side][0].close)
        one, two = arms["a"][1], arms["b"][1]
        plan = plan or rig.plan(one.call_s, two.call_s)
        pairs = pair_blocks(rig, arms, plan, n_pairs or plan.blocks)
        return ProcessPair(one, two, tuple(pairs), plan, process_ratio(rig.target, one, two, pairs), first)


def start(rig: Rig, config: Config, side: Side) -> tuple[Arm, Run]:
    """Open and warm one arm.

    Raises:
        ArmFailed: It failed.
    """
    try:
        return rig.start(config, side)
    except TrialError as error:
        raise ArmFailed(side, error) from error


def lone_blocks(rig: Rig, arm: Arm, run: Run, plan: BlockPlan, n_blocks: int) -> list[Block]:
    """Run blocks of one arm with nothing between them; a dirty block is redone as a pair would be.

    Raises:
        ArmFailed: The worker died or failed.
    """
    return [
        _redone_until_clean(rig, {run.side: (arm, run)}, plan, (run.side,), number)[0] for number in range(n_blocks)
    ]


def _pair(rig: Rig, arms: Arms, plan: BlockPlan, order: tuple[Side, Side], number: int) -> BlockPair:
    blocks = _redone_until_clean(rig, arms, plan, order, number)
    one, two = blocks if order[0] == "a" else reversed(blocks)
    rig.tell("pair", number=number, order="".join(order), is_dirty=bool(one.dirty or two.dirty))
    return BlockPair(one, two)


def _redone_until_clean(rig: Rig, arms: Arms, plan: BlockPlan, order: tuple[Side, ...], number: int) -> list[Block]:
    """Run one block of every side in `order`; run all of them again while one is dirty and the gate allows it."""
    redos = 0
    while True:
        blocks = [_block(rig, arms, side, plan, number) for side in order]
        dirty = [reason for block in blocks for reason in block.dirty]
        if not dirty or not rig.gate.may_redo(redos):
            rig.gate = rig.gate.after_pair(was_redone=redos > 0)
            return blocks
        for side, block in zip(order, blocks, strict=True):
            mark_unused(arms[side][1], [block])
        rig.back_off(redos, reason=dirty[0])
        redos += 1


def _block(rig: Rig, arms: Arms, side: Side, plan: BlockPlan, number: int) -> Block:
    arm, run = arms[side]
    order = sum(len(other.blocks) for _, other in arms.values())
    try:
        return rig.block(arm, run, plan, order=order, pair=number)
    except TrialError as error:
        raise ArmFailed(side, error) from error


def _in_turn(
    rig: Rig,
    configs: Mapping[Side, Config],
    sides: tuple[Side, Side],
    plan: BlockPlan | None,
    n_pairs: int | None,
) -> ProcessPair:
    runs: dict[Side, Run] = {}
    blocks: dict[Side, list[Block]] = {}
    for side in sides:
        arm, run = start(rig, configs[side], side)
        try:
            plan = plan or rig.plan(run.call_s, run.call_s)
            blocks[side] = lone_blocks(rig, arm, run, plan, n_pairs or plan.blocks)
        finally:
            arm.close()
        runs[side] = run
    assert plan is not None
    pairs = tuple(BlockPair(one, two) for one, two in zip(blocks["a"], blocks["b"], strict=True))
    ratio = process_ratio(rig.target, runs["a"], runs["b"], pairs)
    return ProcessPair(runs["a"], runs["b"], pairs, plan, ratio, sides[0])
