"""A playoff: fresh processes of candidate and baseline in pairs, with looks at 5, 8 and 12; verify is the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tuner.compare.anchor import baseline_error
from tuner.compare.arms import ArmCost
from tuner.compare.costs import pair_s
from tuner.compare.decisions import Judgement, gains, judge, speedup_of
from tuner.compare.pairs import ArmFailed, ProcessPair, fresh_pair
from tuner.compare.pooling import measurement_of
from tuner.compare.rig import Rig
from tuner.measure.plan import BlockPlan
from tuner.records.config import Config
from tuner.records.measurement import Failure, Fidelity, Measurement, Notice
from tuner.records.profile import Speedup, Verdict

StoppedBy = Literal["decided", "looks", "time", "failure"]


@dataclass(frozen=True)
class PlayoffOutcome:
    """What a playoff found.

    Attributes:
        verdict: See `decisions.judge`; INCONCLUSIVE without a first look.
        speedup: Baseline / candidate over all pairs, None for fewer than two.
        candidate: Pooled over its processes, None without a pair.
        baseline: The same.
        pairs: Every process pair with every block, for the study's record.
        d: ln(baseline / candidate) of every pair.
        judgement: Of the last look, None if none was reached.
        failure: How the candidate failed in a fresh process; such a candidate cannot win.
        low_confidence: The gate had been given up.
    """

    verdict: Verdict
    speedup: Speedup | None
    candidate: Measurement | None
    baseline: Measurement | None
    pairs: tuple[ProcessPair, ...]
    d: tuple[float, ...]
    judgement: Judgement | None
    stopped_by: StoppedBy
    measure_s: float
    failure: Failure | None = None
    notices: tuple[Notice, ...] = ()
    low_confidence: bool = False


class _Schedule:
    """Whether the next process pairs fit in the time left."""

    def __init__(self, rig: Rig, deadline_s: float | None, hard_deadline_s: float | None, expected_s: float) -> None:
        self.rig = rig
        self.deadline_s = deadline_s
        self.hard_deadline_s = hard_deadline_s if hard_deadline_s is not None else deadline_s
        self.expected_s = expected_s
        self._began = rig.clock.now()

    def note(self, n_pairs: int) -> None:
        """Replace the expectation by the mean of the pairs so far."""
        self.expected_s = (self.rig.clock.now() - self._began) / n_pairs

    def allows(self, n_pairs: int, *, is_first_look: bool) -> bool:
        """Say whether `n_pairs` more fit; the first look has the hard deadline, later ones the other."""
        limit = self.hard_deadline_s if is_first_look else self.deadline_s
        return limit is None or self.rig.clock.now() + n_pairs * self.expected_s <= limit


def run_playoff(
    candidate: Config,
    baseline: Config,
    rig: Rig,
    *,
    deadline_s: float | None = None,
    hard_deadline_s: float | None = None,
    costs: tuple[ArmCost, ArmCost] | None = None,
    looks: Sequence[int] | None = None,
    fidelity: Fidelity | None = None,
    baseline_fidelity: Fidelity | None = None,
) -> PlayoffOutcome:
    """Compare a candidate with the baseline on fresh data only.

    Args:
        candidate: The finalist.
        baseline: What the user gets without us.
        rig: The bench, with the objective.
        deadline_s: Clock time after which no pairs for a later look begin; None never.
        hard_deadline_s: Clock time after which no pair of the first look begins (1.1 times the budget); None: as above.
        costs: Of candidate and baseline, from their trials; None: the block plan comes from the first pair.
        looks: Process pairs at each look; None takes the plan's (5, 8, 12; tails 6, 10, 16).
        fidelity: The candidate's, for constraints on it.
        baseline_fidelity: The baseline's.

    Raises:
        HostError: The baseline failed twice in fresh processes.
    """
    began = rig.measure_s
    plan = None if costs is None else rig.plan(costs[0].call_s, costs[1].call_s)
    expected_s = 0.0 if costs is None or plan is None else pair_s(costs[0], costs[1], plan)
    schedule = _Schedule(rig, deadline_s, hard_deadline_s, expected_s)
    pairs: list[ProcessPair] = []
    judgement: Judgement | None = None
    stopped_by: StoppedBy = "looks"
    failure: Failure | None = None
    next_look = 0
    while judgement is None or next_look < len(_looks(looks, plan)):
        due = _looks(looks, plan)[next_look] - len(pairs)
        if not schedule.allows(1 if next_look == 0 else due, is_first_look=next_look == 0):
            stopped_by = "time"
            break
        try:
            pair = _pair(candidate, baseline, rig, plan)
        except ArmFailed as failed:
            failure = Failure(stage=failed.error.stage, kind=failed.error.kind, message=failed.error.message)
            stopped_by = "failure"
            break
        pairs.append(pair)
        plan = pair.plan
        schedule.note(len(pairs))
        if len(pairs) < _looks(looks, plan)[next_look]:
            continue
        next_look += 1
        judgement = judge(
            pairs,
            rig.objective,
            items_per_batch=rig.items_per_batch,
            fidelity=fidelity,
            baseline_fidelity=baseline_fidelity,
        )
        rig.tell("look", pairs=len(pairs), verdict=judgement.verdict, decision=judgement.decision)
        if judgement.is_final:
            stopped_by = "decided"
            break
    return _outcome(
        rig,
        pairs,
        judgement,
        stopped_by=stopped_by,
        failure=failure,
        measure_s=rig.measure_s - began,
        fidelity=fidelity,
        baseline_fidelity=baseline_fidelity,
    )


def _looks(looks: Sequence[int] | None, plan: BlockPlan | None) -> Sequence[int]:
    return looks if looks is not None else (BlockPlan(n=1) if plan is None else plan).looks


def _pair(candidate: Config, baseline: Config, rig: Rig, plan: BlockPlan | None) -> ProcessPair:
    """Run one process pair when the host is calm; a failed baseline gets a second chance, a candidate none.

    Raises:
        ArmFailed: The candidate failed.
        HostError: The baseline failed twice.
    """
    redos = 0
    while rig.gate.may_redo(redos) and rig.sentinel_is_slow():
        rig.back_off(redos, reason="sentinel")
        redos += 1
    baseline_failures = 0
    while True:
        in_turn = rig.runs_in_turn(candidate, baseline)
        try:
            pair = fresh_pair(rig, candidate, baseline, plan=plan, in_turn=in_turn)
        except ArmFailed as failed:
            if failed.error.kind == "out_of_memory" and not in_turn:
                rig.must_run_in_turn = True
                continue
            baseline_failures += failed.side == "b"
            if failed.side == "a":
                raise
            if baseline_failures > 1:
                raise baseline_error(failed.error) from failed
        else:
            rig.note_size(pair.a)
            rig.note_size(pair.b)
            return pair


def _outcome(
    rig: Rig,
    pairs: list[ProcessPair],
    judgement: Judgement | None,
    *,
    stopped_by: StoppedBy,
    failure: Failure | None,
    measure_s: float,
    fidelity: Fidelity | None,
    baseline_fidelity: Fidelity | None,
) -> PlayoffOutcome:
    d = gains(pairs)
    is_open, items = rig.gate.is_open, rig.items_per_batch
    candidate = baseline = None
    if pairs:
        candidate = measurement_of(
            [pair.a for pair in pairs], items_per_batch=items, fidelity=fidelity, low_confidence=is_open
        )
        baseline = measurement_of(
            [pair.b for pair in pairs], items_per_batch=items, fidelity=baseline_fidelity, low_confidence=is_open
        )
    return PlayoffOutcome(
        verdict="INCONCLUSIVE" if judgement is None or failure is not None else judgement.verdict,
        speedup=speedup_of(d),
        candidate=candidate,
        baseline=baseline,
        pairs=tuple(pairs),
        d=tuple(d),
        judgement=judgement,
        stopped_by=stopped_by,
        measure_s=measure_s,
        failure=failure,
        notices=notices_of(judgement),
        low_confidence=is_open,
    )


def notices_of(judgement: Judgement | None) -> tuple[Notice, ...]:
    """Return what a person should know of a judgement beside its verdict."""
    if judgement is None:
        return ()
    notices = []
    if judgement.guard == "not_resolved":
        detail = "p99: neither shown to stay within 10% of the baseline's nor to leave it"
        notices.append(Notice(code="p99_not_resolved", detail=detail, remedy="use --target p99, or a larger budget"))
    if judgement.guard == "harm" and judgement.decision == "WIN":
        detail = "p99 is shown to grow by more than 10%: the faster configuration was refused"
        notices.append(Notice(code="p99_harm", detail=detail, remedy="use --target p99"))
    for name, state in judgement.held.items():
        if state != "holds":
            detail = f"the candidate is {'shown to break' if state == 'broken' else 'not shown to keep'} {name}"
            notices.append(Notice(code=f"constraint_{state}", detail=detail, remedy="use a larger budget or limit"))
    if judgement.decision == "WIN" and judgement.is_sign_confirmed is False:
        detail = f"the signs of the pairs alone do not confirm the gain (e-value {judgement.e_value:.1f}, 40 would)"
        notices.append(Notice(code="sign_not_confirmed", detail=detail))
    return tuple(notices)
