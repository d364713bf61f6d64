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
    return _outcome(rig, pairs, judgement, stopped_by, failure, rig.measure_s - began, fidelity, baseline_fidelity)
