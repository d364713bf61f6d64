"""Decides: a race of finalists, the playoff of the best against the baseline, the profile; it searches nothing."""

import math

from tuner.compare.playoff import PlayoffOutcome, run_playoff
from tuner.compare.race import near_best, run_race
from tuner.errors import NoFeasibleTrial
from tuner.records.config import Config
from tuner.records.measurement import Measured, Measurement, Notice
from tuner.records.profile import Profile, Verdict
from tuner.study.importance import minimal_config
from tuner.study.objective import figure, is_feasible, violations
from tuner.study.store import TrialRecord
from tuner.tuning.search import RACE_SHARE, expected_trial_s, n_finalists
from tuner.tuning.session import TuningSession
from tuner.tuning.studies import PROFILE
from tuner.tuning.trials import keep, record_of, try_config

WORTH = math.log(1.01)
WALL_FACTOR = 1.08
AGAIN = "run the command again with a larger --budget: the study goes on and plays off anew"
SERVABLE = ("WIN", "FEASIBLE_ONLY")


def finish(session: TuningSession) -> Profile:
    """Race, play off, and store the profile in the study.

    Raises:
        NoFeasibleTrial: Nothing that was measured keeps the constraints, the baseline included.
    """
    assert session.baseline is not None
    ranked = feasible_trials(session)
    if not ranked and not is_feasible(session.baseline.measurement, session.plan.objective):
        raise NoFeasibleTrial(closest_miss(session))
    candidate = simplest(session, best_of_race(session, ranked)) if ranked else None
    profile = without_rival(session) if candidate is None else play_off(session, candidate)
    session.study.save(PROFILE, profile.to_json(indent=1).encode() + b"\n")
    session.mark_finished()
    session.say("verdict", f"{profile.verdict}" + (f" {profile.speedup.ratio:.2f}×" if profile.speedup else ""))
    return profile


def feasible_trials(session: TuningSession) -> list[TrialRecord]:
    """Return the measured trials that keep the constraints, best first; the baseline's own config is none of them."""
    found = [
        record
        for record in session.records
        if record.state == "measured"
        and record.purpose in ("screen", "search")
        and record.value is not None
        and record.measurement is not None
        and is_feasible(record.measurement, session.plan.objective)
        and record.config != session.plan.baseline
    ]
    return sorted(found, key=lambda record: expected(session, record)[0])


def expected(session: TuningSession, record: TrialRecord) -> tuple[float, float]:
    """Return what the search expects of a measured config, its value freed of some of its luck, and the sd of that."""
    found = session.suggester.expected(record.config) if session.suggester is not None else None
    return found if found is not None else (record.value or 0.0, 0.0)


def best_of_race(session: TuningSession, ranked: list[TrialRecord]) -> TrialRecord:
    """Return the leader of a race of the trials near the best; the best itself where there is no time or no rival."""
    values, sd = zip(*(expected(session, record) for record in ranked), strict=True)
    finalists = [ranked[index] for index in near_best(values, sd, n_finalists(session))]
    time_s = min(RACE_SHARE * session.plan.request.budget_s, session.left_s() - session.playoff_reserve_s())
    if len(finalists) < 2 or time_s <= 0:  # noqa: PLR2004 - a race needs two
        return ranked[0]
    session.say("race", f"race of {len(finalists)} finalists")
    outcome = run_race(
        [record.config for record in finalists],
        session.anchor,
        session.rig,
        deadline_s=session.rig.clock.now() + time_s,
        expected_trial_s=expected_trial_s(session),
    )
    for trial in outcome.trials:
        keep(session, record_of(session, trial, "race"))
    return finalists[outcome.ranking[0]]


def simplest(session: TuningSession, best: TrialRecord) -> TrialRecord:
    """Return the best with knobs that did nothing back at their defaults, if a trial shows it to be as fast."""
    trials = [record for record in session.records if record.purpose in ("screen", "search")]
    proposal = minimal_config(trials, session.plan.space, best.config)
    if proposal is None or session.left_s() - session.playoff_reserve_s() < expected_trial_s(session):
        return best
    known = [record for record in trials if record.config == proposal]
    record = known[0] if known else try_config(session, proposal, "race")
    feasible = record.measurement is not None and is_feasible(record.measurement, session.plan.objective)
    is_as_fast = record.value is not None and record.value <= (best.value or 0.0) + WORTH
    return record if record.state == "measured" and feasible and is_as_fast else best


def play_off(session: TuningSession, candidate: TrialRecord) -> Profile:
    """Compare the candidate with the baseline on fresh data and return the profile."""
    assert session.baseline is not None
    assert candidate.measurement is not None
    assert session.baseline_cost is not None
    session.anchor.release()
    session.say("playoff", f"playoff against the baseline: {candidate.config.backend} {candidate.config.chain()}")
    now, left_s = session.rig.clock.now(), session.left_s()
    cost = session.costs.get(candidate.config.digest())
    outcome = run_playoff(
        candidate.config,
        session.plan.baseline,
        session.rig,
        deadline_s=now + left_s,
        hard_deadline_s=now + left_s + (WALL_FACTOR - 1) * session.plan.request.budget_s,
        costs=None if cost is None else (cost, session.baseline_cost),
        fidelity=candidate.measurement.fidelity,
        baseline_fidelity=session.baseline.measurement.fidelity,
    )
    keep(session, playoff_record(session, candidate, outcome))
    judgement = outcome.judgement
    if judgement is not None and judgement.broken_by_baseline and outcome.verdict not in SERVABLE:
        held = ", ".join(f"{limit}: {state}" for limit, state in judgement.held.items())
        raise NoFeasibleTrial(
            f"the baseline breaks {judgement.broken_by_baseline[0]} and no configuration is shown to keep it; closest: "
            f"{name(candidate.config)} ({held}); use a larger --budget or loosen the limit"
        )
    return decided_profile(session, candidate, outcome)


def playoff_record(session: TuningSession, candidate: TrialRecord, outcome: PlayoffOutcome) -> TrialRecord:
    """Return the playoff as a line of measurements.jsonl, every block in it."""
    return TrialRecord(
        number=len(session.records),
        purpose="playoff",
        config=candidate.config,
        state="failed" if outcome.failure is not None else "measured",
        value=-math.fsum(outcome.d) / len(outcome.d) if outcome.d else None,
        violations=violations(outcome.candidate, session.plan.objective) if outcome.candidate else {},
        measurement=outcome.candidate,
        failure=outcome.failure,
        numerics_key=candidate.numerics_key,
        candidate_blocks=tuple(block for pair in outcome.pairs for block in pair.a.blocks),
        anchor_blocks=tuple(block for pair in outcome.pairs for block in pair.b.blocks),
        measure_s=outcome.measure_s,
        wall_s=outcome.measure_s,
    )


def decided_profile(session: TuningSession, candidate: TrialRecord, outcome: PlayoffOutcome) -> Profile:
    """Return the profile of a playoff: the candidate where it won or alone is feasible, else the baseline."""
    assert session.baseline is not None
    assert candidate.measurement is not None
    tried = Measured(config=candidate.config, measurement=pooled(outcome.candidate, candidate.measurement))
    base = Measured(config=session.plan.baseline, measurement=pooled(outcome.baseline, session.baseline.measurement))
    wins = outcome.verdict in SERVABLE
    notices = list(outcome.notices)
    if outcome.failure is not None:
        detail = f"the finalist failed in a fresh process: {outcome.failure.kind}: {outcome.failure.message}"
        notices.append(Notice(code="finalist_failed", detail=detail, remedy=AGAIN))
    if outcome.stopped_by == "time" and outcome.judgement is None:
        detail = f"time ran out after {len(outcome.pairs)} process pairs, before the first look"
        notices.append(Notice(code="playoff_unfinished", detail=detail, remedy=AGAIN))
    return session.profile(
        verdict=outcome.verdict,
        baseline=base,
        best=tried if wins else base,
        challenger=None if wins else tried,
        speedup=None if outcome.verdict == "FEASIBLE_ONLY" else outcome.speedup,
        notices=notices,
    )


def pooled(fresh: Measurement | None, earlier: Measurement) -> Measurement:
    """Return the playoff's figures where there was one; fidelity is measured once per numerics key."""
    return earlier if fresh is None else fresh.model_copy(update={"fidelity": fresh.fidelity or earlier.fidelity})


def without_rival(session: TuningSession) -> Profile:
    """Return the profile of a run that found no rival for the baseline; where every trial failed, nothing is known."""
    assert session.baseline is not None
    states = {record.state for record in session.records if record.purpose in ("screen", "search")}
    verdict: Verdict = "INCONCLUSIVE" if states == {"failed"} else "NO_WORTHWHILE_WIN"
    return session.profile(verdict=verdict, baseline=session.baseline, best=session.baseline)


def closest_miss(session: TuningSession) -> str:
    """Say which measured config came closest to the constraints, and by how much it misses."""
    objective = session.plan.objective
    tried = [record for record in session.records if record.measurement is not None and record.purpose != "playoff"]
    if not tried:
        return "no configuration could be measured; see `autotune show` of the study for the failures"

    def worst(record: TrialRecord) -> float:
        assert record.measurement is not None
        return max(violations(record.measurement, objective).values(), default=0.0)

    nearest = min(tried, key=worst)
    assert nearest.measurement is not None
    broken = [
        f"{constraint.path} is {figure(nearest.measurement, constraint.path):.4g}, "
        f"wanted {constraint.operator} {constraint.bound:.4g}"
        for constraint, value in zip(
            objective.constraints, violations(nearest.measurement, objective).values(), strict=True
        )
        if value > 0
    ]
    return (
        f"no configuration keeps the constraints; closest: {name(nearest.config)}: {'; '.join(broken)}; "
        "loosen the limit or allow more --backends; an existing profile was left alone"
    )


def name(config: Config) -> str:
    """Return a config as one phrase."""
    return f"{config.backend} {config.chain()} " + " ".join(f"{key}={value}" for key, value in config.session.items())
