"""Spends the time before the playoff: screening, then the sampler's suggestions, one trial after another."""

import math
import time

from tuner.study.building import holds_native_code
from tuner.study.objective import constraint_key
from tuner.study.optuna_study import TrialBook, sampler_of
from tuner.study.store import TrialRecord
from tuner.study.suggesting import Suggester
from tuner.tuning.session import TuningSession
from tuner.tuning.trials import try_config
from tuner.tuning.warming import screened_cells, warm_rows

SCREEN_SHARE = 0.40
SPARE_S = 2.0
FINALISTS = 8
FEW_FINALISTS = 2
FEW_COMPILED = 1
"""Artifacts that are compiled in a budget under ten minutes."""
SHORT_BUDGET_S = 600.0
RACE_ROUNDS = 3
RACE_SHARE = 0.15
STOPPED_BUDGET = "budget"
STOPPED_TRIALS = "trials"
STOPPED_EXHAUSTED = "space exhausted"


def search(session: TuningSession) -> None:
    """Run trials until the time before the playoff is spent, --trials is reached or nothing untried is worth it."""
    plan = session.plan
    suggester = session.suggester = make_suggester(session)
    session.say("plan", f"{plan.space.size()} configurations, {len(suggester.screening())} of them for screening")
    began, n_new = time.monotonic(), 0
    screen_until = began + SCREEN_SHARE * max(0.0, search_left_s(session))
    while True:
        if plan.request.trials is not None and n_new >= plan.request.trials:
            session.stopped_by = STOPPED_TRIALS
            return
        left_s = search_left_s(session)
        if left_s < expected_trial_s(session) + SPARE_S:
            session.stopped_by = STOPPED_BUDGET
            return
        if time.monotonic() > screen_until:
            for config in suggester.screening():
                if not session.workshop.is_built(config):
                    suggester.skip_screening(config)
            suggester.end_screening()
        reason = None if session.must_spend_all else suggester.should_stop()
        if reason is not None:
            session.stopped_by = reason
            return
        suggestion = suggester.next(left_s - SPARE_S)
        if suggestion is None:
            session.stopped_by = STOPPED_EXHAUSTED if suggester.is_exhausted() else STOPPED_BUDGET
            return
        record = try_config(session, suggestion.config, suggestion.purpose)
        suggester.note(record)
        suggester.book.tell(suggestion.trial, record)
        n_new += 1
        say_trial(session, record)
        for backend, reason in suggester.newly_disabled():
            session.warn(
                "backend_disabled", f"{backend}: three failures in a row: {reason}", "see its log in the study"
            )


def make_suggester(session: TuningSession) -> Suggester:
    """Open the Optuna study and tell it what earlier runs measured."""
    plan = session.plan
    keys = tuple(constraint_key(constraint) for constraint in plan.objective.constraints)
    seeds = len(plan.space.artifact_points())
    book = TrialBook(
        session.study.directory,
        plan.request.storage,
        plan.space,
        sampler=sampler_of(plan.request.sampler, plan.request.seed + session.n_earlier, n_seeds=seeds),
        constraints=keys,
        name=f"autotune-{plan.key[:16]}",
    )
    trials = [record for record in session.records if record.purpose in ("screen", "search")]
    book.rebuild(trials)
    suggester = Suggester(
        book,
        plan.space,
        seed=plan.request.seed + session.n_earlier,
        records=trials,
        sampler=plan.request.sampler,
        build_s=session.workshop.expected_s,
        is_compiled=lambda config: holds_native_code(config.artifact),
        most_compiled=FEW_COMPILED if plan.request.budget_s < SHORT_BUDGET_S else None,
    )
    if session.earlier is not None:
        rows = warm_rows(suggester.table, session.earlier)
        suggester.begin_with(rows, screened_cells(suggester.table, session.earlier) if rows else ())
    return suggester


def search_left_s(session: TuningSession) -> float:
    """Return the seconds before the race and the playoff must begin."""
    return session.left_s() - session.playoff_reserve_s() - race_s(session)


def race_s(session: TuningSession) -> float:
    """Return the seconds kept for the race: three rounds of the finalists, at most 15% of the budget."""
    rounds_s = RACE_ROUNDS * n_finalists(session) * expected_trial_s(session)
    return min(RACE_SHARE * session.plan.request.budget_s, rounds_s)


def n_finalists(session: TuningSession) -> int:
    """Return how many may race: 8, or 2 in less than ten minutes."""
    return FEW_FINALISTS if session.plan.request.budget_s < SHORT_BUDGET_S else FINALISTS


def expected_trial_s(session: TuningSession) -> float:
    """Return what a trial takes by the slowest of the last five, five seconds before any."""
    recent = [record.wall_s - record.build_s for record in session.records[-5:] if record.purpose != "baseline"]
    return max(recent, default=5.0)


def say_trial(session: TuningSession, record: TrialRecord) -> None:
    """Report one trial; its ratio to the baseline is below 1 where it is better, also for throughput."""
    config = record.config
    name = f"#{record.number} {config.backend} {config.chain()} " + " ".join(
        f"{k}={v}" for k, v in config.session.items()
    )
    incumbent = session.anchor.incumbent
    if record.state == "failed":
        assert record.failure is not None
        text = f"{name}: {record.failure.kind}: {record.failure.message}"
    else:
        figure = session.describe(record.measurement) if record.measurement else f"×{math.exp(record.value or 0.0):.2f}"
        broken = [key for key, value in record.violations.items() if value > 0]
        marks = ["pruned"] if record.state == "pruned" else []
        marks += [f"misses {broken[0]}"] if broken else []
        marks += ["best so far"] if incumbent is not None and incumbent.config == config else []
        text = f"{name}: {figure}" + (f" ({', '.join(marks)})" if marks else "")
    ratio = math.exp(record.value) if record.value is not None and record.state != "failed" else None
    session.say("trial", text, number=record.number, state=record.state, ratio_to_baseline=ratio)
