"""A trial: one fresh process of a candidate against the resident anchor, two block pairs, early end when hopeless."""

import math
from dataclasses import replace
from statistics import fmean
from typing import Literal

from tuner.compare.anchor import Anchor, baseline_error
from tuner.compare.arms import BlockPair, Run, Side, mark_unused
from tuner.compare.outcome import TrialOutcome
from tuner.compare.pairs import ArmFailed, lone_blocks, pair_blocks
from tuner.compare.pooling import measurement_of
from tuner.compare.protocols import Arm
from tuner.compare.rig import Rig
from tuner.compare.targets import pair_ratio, process_ratio
from tuner.errors import TrialError
from tuner.measure.plan import BlockPlan
from tuner.messages import FidelityDone
from tuner.records.config import Config
from tuner.records.measurement import Block, Failure

__all__ = ["TrialOutcome", "refit", "run_trial"]

PRUNE_RATIO = 1.10
PRUNE_Z = 2.326
"""One-sided .01; the spread is pooled over the study, so a normal quantile."""
_INCUMBENT_PAIRS = 2
_ANCHOR_LIVES = 3
QUICK_LOOK = BlockPlan(n=3, discard_calls=1, discard_s=0.0)


def run_trial(
    config: Config, anchor: Anchor, rig: Rig, *, fidelity_samples: int | None = None, allow_prune: bool = True
) -> TrialOutcome:
    """Measure `config` against the anchor.

    The candidate ends early as ``pruned`` when its warm call is above 3 times the incumbent's (latency targets), or
    when the lower bound of ln(cost / cost of the incumbent) is above ln 1.10. An anchor that died is opened again with
    another id, the pairs are run anew, and the incumbent is measured once more to fit `anchor.offset`.

    Args:
        config: The candidate.
        anchor: The resident baseline; its `incumbent` limits the trial.
        rig: The bench.
        fidelity_samples: Compare the outputs of so many samples after the last block; None: already known.
        allow_prune: False measures to the end.

    Raises:
        HostError: The baseline itself does not run.
    """
    began = rig.measure_s
    outcome = _Trial(config, anchor, rig, fidelity_samples, allow_prune=allow_prune).run()
    outcome = replace(outcome, measure_s=rig.measure_s - began, low_confidence=rig.gate.is_open)
    if anchor.needs_refit:
        refit(anchor, rig)
    return outcome if outcome.value is None else replace(outcome, value=outcome.value + anchor.offset)


def refit(anchor: Anchor, rig: Rig) -> None:
    """Measure the incumbent against a restarted anchor, and set `anchor.offset` so that its value stays what it was.

    Without an incumbent there is nothing to carry over, and the offset stays.
    """
    anchor.needs_refit = False
    if anchor.incumbent is None:
        return
    again = _Trial(anchor.incumbent.config, anchor, rig, None, allow_prune=False).run()
    if again.value is not None:
        anchor.offset = anchor.incumbent.value - again.value


class _Trial:
    """One trial under way; values are raw, without the anchor's offset."""

    def __init__(
        self, config: Config, anchor: Anchor, rig: Rig, fidelity_samples: int | None, *, allow_prune: bool
    ) -> None:
        self.config = config
        self.anchor = anchor
        self.rig = rig
        self.fidelity_samples = fidelity_samples
        self.allow_prune = allow_prune
        self.mine: Run | None = None
        self.pairs: list[BlockPair] = []
        self.anchor_blocks: list[Block] = []
        self.checked: FidelityDone | None = None

    def run(self) -> TrialOutcome:
        """Return the outcome; a TrialError of the candidate becomes its failure."""
        reference = self.anchor.reference()
        self.rig.note_size(reference)
        in_turn = self.rig.runs_in_turn(self.config, self.anchor.config)
        if in_turn:
            self.anchor.release()
        try:
            if in_turn and self.rig.random.random() < 0.5:  # noqa: PLR2004 - a fair coin
                return self._in_turn(self._fresh_anchor())
            return self._in_turn(None) if in_turn else self._beside(reference)
        except (ArmFailed, TrialError) as raised:
            error = raised.error if isinstance(raised, ArmFailed) else raised
            if error.kind == "out_of_memory" and not in_turn:
                return self._without_neighbour()
            return self._failed(error)

    def _without_neighbour(self) -> TrialOutcome:
        """Try a candidate that ran out of memory once more, with the anchor out of the way."""
        self.anchor.release()
        self.mine, self.pairs = None, []
        try:
            return self._in_turn(None)
        except (ArmFailed, TrialError) as raised:
            return self._failed(raised.error if isinstance(raised, ArmFailed) else raised)

    def _beside(self, reference: Run) -> TrialOutcome:
        """Run with the anchor resident, or against its known cost where a call takes seconds."""
        limit_s = self.anchor.quick_limit_s() if self.allow_prune and self.rig.target.is_latency else None
        arm, mine = self.rig.start(self.config, "a", quick_limit_s=limit_s)
        self.mine = mine
        try:
            if mine.warmed.kind == "dominated":
                anchor_s = self._anchor_call_now(reference)
                if mine.warmed.fastest_s > (limit_s or 0.0) * max(1.0, anchor_s / reference.warmed.fastest_s):
                    return self._outcome("pruned", math.log(mine.warmed.fastest_s / anchor_s))
                self.rig.warm_again(arm, mine)
            plan = self.rig.plan(mine.call_s, reference.call_s)
            if plan.use_anchor:
                other = self._against_anchor(arm, mine, plan)
            else:
                self.anchor.release()
                lone_blocks(self.rig, arm, mine, plan, plan.trial_blocks())
                other = reference
            is_cut = 0 < len(self.pairs) < plan.trial_blocks()
            if not is_cut:
                self._check(arm)
        finally:
            arm.close()
        if not plan.use_anchor:
            other = self.anchor.time_alone()
        value = process_ratio(self.rig.target, mine, other, self.pairs)
        return self._outcome("pruned" if is_cut else "measured", value)

    def _anchor_call_now(self, reference: Run) -> float:
        """Return the fastest of a few calls of the anchor now: where the whole host is slow, nobody is dominated."""
        if not self.rig.plan(reference.call_s, reference.call_s).use_anchor:
            return reference.warmed.fastest_s
        resident, theirs = self.anchor.arm()
        try:
            block = self.rig.block(resident, theirs, QUICK_LOOK, order=0, pair=0)
        except TrialError:
            self.anchor.lost()
            return reference.warmed.fastest_s
        mark_unused(theirs, [block])
        self.anchor_blocks += theirs.blocks
        return min(block.latencies_s)

    def _against_anchor(self, arm: Arm, mine: Run, plan: BlockPlan) -> Run:
        """Interleave blocks with the anchor; when it died, open another and begin again."""
        for life in range(_ANCHOR_LIVES):
            resident, theirs = self.anchor.arm()
            try:
                arms: dict[Side, tuple[Arm, Run]] = {"a": (arm, mine), "b": (resident, theirs)}
                self.pairs = pair_blocks(
                    self.rig, arms, plan, plan.trial_blocks(), is_enough=lambda pairs: self._is_hopeless(pairs, plan)
                )
            except ArmFailed as failed:
                mark_unused(theirs, theirs.blocks)
                self.anchor_blocks += theirs.blocks
                if failed.side == "a":
                    raise
                mark_unused(mine, mine.blocks)
                self.anchor.lost()
                if life + 1 == _ANCHOR_LIVES:
                    raise baseline_error(failed.error) from failed
            else:
                self.anchor_blocks += theirs.blocks
                self.rig.note_size(mine)
                self.rig.note_size(theirs)
                self.rig.note_spread(self._ratios())
                return theirs
        raise AssertionError

    def _in_turn(self, before: Run | None) -> TrialOutcome:
        """Run candidate and anchor one after the other, each in a fresh process."""
        plan = self._plan_in_turn()
        arm, mine = self.rig.start(self.config, "a")
        self.mine = mine
        try:
            lone_blocks(self.rig, arm, mine, plan, plan.trial_blocks())
            self._check(arm)
        finally:
            arm.close()
        self.rig.note_size(mine)
        other = before or self._fresh_anchor()
        self.anchor_blocks += other.blocks
        self.pairs = [BlockPair(a, b) for a, b in zip(mine.used_blocks(), other.used_blocks(), strict=True)]
        return self._outcome("measured", process_ratio(self.rig.target, mine, other, self.pairs))

    def _fresh_anchor(self) -> Run:
        return self.anchor.fresh_run(self._plan_in_turn())

    def _plan_in_turn(self) -> BlockPlan:
        call_s = self.anchor.reference().call_s
        return self.rig.plan(call_s, call_s)

    def _is_hopeless(self, pairs: list[BlockPair], plan: BlockPlan) -> bool:
        """Say whether the candidate is shown to be more than 10% worse than the incumbent, pairs being left to save."""
        incumbent = self.anchor.incumbent
        if not self.allow_prune or incumbent is None or len(pairs) >= plan.trial_blocks() or self.anchor.needs_refit:
            return False
        ratios = [pair_ratio(self.rig.target, pair) for pair in pairs]
        excess = fmean(ratios) + self.anchor.offset - incumbent.value
        width = PRUNE_Z * self.rig.pair_sd() * math.sqrt(1 / len(ratios) + 1 / _INCUMBENT_PAIRS)
        return excess - width > math.log(PRUNE_RATIO)

    def _check(self, arm: Arm) -> None:
        if self.fidelity_samples is not None:
            self.checked = self.rig.check_fidelity(arm, self.fidelity_samples)

    def _ratios(self) -> list[float]:
        ratios = [pair_ratio(self.rig.target, pair) for pair in self.pairs]
        return [ratio for ratio in ratios if math.isfinite(ratio)]

    def _failed(self, error: TrialError) -> TrialOutcome:
        failure = Failure(stage=error.stage, kind=error.kind, message=error.message)
        return replace(self._outcome("failed", None), failure=failure)

    def _outcome(self, state: Literal["measured", "pruned", "failed"], value: float | None) -> TrialOutcome:
        fidelity = None if self.checked is None else self.checked.fidelity
        is_pooled = state != "failed" and self.mine is not None and bool(self.mine.used_blocks())
        return TrialOutcome(
            config=self.config,
            state=state,
            measure_s=0.0,
            value=value,
            ratios=tuple(self._ratios()),
            candidate_blocks=() if self.mine is None else tuple(self.mine.blocks),
            anchor_blocks=tuple(self.anchor_blocks),
            anchor_id=self.anchor.anchor_id,
            loaded=None if self.mine is None else self.mine.loaded,
            warmed=None if self.mine is None else self.mine.warmed,
            measurement=measurement_of(
                [self.mine],
                items_per_batch=self.rig.items_per_batch,
                fidelity=fidelity,
                low_confidence=self.rig.gate.is_open,
            )
            if is_pooled and self.mine is not None
            else None,
            fidelity=fidelity,
            stopped_early=self.checked is not None and self.checked.stopped_early,
            cost=None if self.mine is None else self.mine.cost(),
        )
