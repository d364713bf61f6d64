"""Measures the baseline and single configurations within a session, and keeps what was found; it chooses none."""

import math
import time
from statistics import stdev

from tuner.compare.anchor import Incumbent, baseline_error
from tuner.compare.costs import check_budget, warm_cost
from tuner.compare.pairs import ArmFailed, lone_blocks
from tuner.compare.pooling import measurement_of
from tuner.compare.trial import TrialOutcome, run_trial
from tuner.errors import TrialError
from tuner.records.config import Config
from tuner.records.measurement import Failure, Measured, Measurement
from tuner.study.objective import figure, is_feasible, violations
from tuner.study.store import Purpose, TrialRecord
from tuner.tuning.session import TuningSession, now

BASELINE_BLOCKS = 4


def measure_baseline(session: TuningSession) -> None:
    """Build and open the anchor and measure the baseline, or take its measurement from an earlier run of this study.

    Raises:
        UsageError: The budget does not hold the playoff's first look; names the least that works.
        HostError: The baseline does not run.
    """
    try:
        session.workshop.ensure(session.plan.baseline)
    except TrialError as error:
        raise baseline_error(error) from error
    _, run = session.anchor.arm()
    budget_s, plan = session.plan.request.budget_s, session.rig.plan(run.call_s, run.call_s)
    session.baseline_cost = warm_cost(budget_s, run.cost(), plan, session.anchor.fresh_cost)
    check_budget(budget_s, session.baseline_cost, plan)
    known = next((record for record in session.records if record.purpose == "baseline" and record.measurement), None)
    if known is None:
        known = measure_anchor(session)
    assert known.measurement is not None
    session.baseline = Measured(config=session.plan.baseline, measurement=known.measurement)
    for record in session.records:
        remember(session, record)
    if session.n_earlier and session.anchor.incumbent is not None:
        session.anchor.needs_refit = True
    target = figure(known.measurement, session.plan.objective.target)
    session.say(
        "baseline", f"baseline {session.plan.baseline.backend}: {session.describe(known.measurement)}", value=target
    )


def measure_anchor(session: TuningSession) -> TrialRecord:
    """Time the resident baseline by itself and compare its outputs with the reference."""
    arm, run = session.anchor.arm()
    plan = session.rig.plan(run.call_s, run.call_s)
    began = session.rig.measure_s
    try:
        lone_blocks(session.rig, arm, run, plan, min(BASELINE_BLOCKS, plan.blocks))
        done = session.rig.check_fidelity(arm, session.n_samples)
        arm.pause()
    except ArmFailed as failed:
        raise baseline_error(failed.error) from failed
    except TrialError as error:
        raise baseline_error(error) from error
    measurement = measurement_of(
        [run],
        items_per_batch=session.rig.items_per_batch,
        fidelity=done.fidelity,
        low_confidence=session.rig.gate.is_open,
    )
    record = TrialRecord(
        number=len(session.records),
        purpose="baseline",
        config=session.plan.baseline,
        state="measured",
        value=0.0,
        violations=violations(measurement, session.plan.objective),
        measurement=measurement,
        anchor_id=run.arm_id,
        anchor_blocks=tuple(run.blocks),
        measure_s=session.rig.measure_s - began,
        started_at=now(),
    )
    keep(session, record)
    return record


def try_config(session: TuningSession, config: Config, purpose: Purpose) -> TrialRecord:
    """Build what `config` needs, measure it against the anchor, judge it and keep the record; failures are records."""
    began, started_at = time.monotonic(), now()
    key = session.numerics_key(config)
    build_s = 0.0
    try:
        build_s = session.workshop.ensure(config)
        known = session.fidelity.get(key)
        outcome = run_trial(
            config, session.anchor, session.rig, fidelity_samples=None if known is not None else session.n_samples
        )
    except TrialError as error:
        failure = Failure(stage=error.stage, kind=error.kind, message=error.message)
        outcome = TrialOutcome(config, "failed", 0.0, failure=failure)
    record = record_of(
        session, outcome, purpose, build_s=build_s, wall_s=time.monotonic() - began, started_at=started_at
    )
    keep(session, record)
    remember(session, record, outcome)
    return record


def record_of(
    session: TuningSession,
    outcome: TrialOutcome,
    purpose: Purpose,
    *,
    build_s: float = 0.0,
    wall_s: float | None = None,
    started_at: str = "",
) -> TrialRecord:
    """Return a trial as a line of measurements.jsonl, its measurement judged."""
    key = session.numerics_key(outcome.config)
    measurement = judged(session, outcome, key)
    if outcome.cost is not None:
        session.costs[outcome.config.digest()] = outcome.cost
    return TrialRecord(
        number=len(session.records),
        purpose=purpose,
        config=outcome.config,
        state=outcome.state,
        value=outcome.value,
        violations=violations(measurement, session.plan.objective) if measurement is not None else {},
        measurement=measurement,
        failure=outcome.failure,
        anchor_id=outcome.anchor_id,
        numerics_key=key,
        pair_sd=stdev(outcome.ratios) if len(outcome.ratios) > 1 else None,
        candidate_blocks=outcome.candidate_blocks,
        anchor_blocks=outcome.anchor_blocks,
        build_s=build_s,
        measure_s=outcome.measure_s,
        wall_s=outcome.measure_s if wall_s is None else wall_s,
        started_at=started_at or now(),
    )


def judged(session: TuningSession, outcome: TrialOutcome, key: str) -> Measurement | None:
    """Return the measurement with the fidelity of its numerics key."""
    if outcome.measurement is None:
        return None
    if outcome.fidelity is not None:
        session.fidelity[key] = outcome.fidelity
    return outcome.measurement.model_copy(update={"fidelity": session.fidelity.get(key)})


def keep(session: TuningSession, record: TrialRecord) -> None:
    """Store a record, durable before anything else happens."""
    session.study.append(record)
    session.records.append(record)


def remember(session: TuningSession, record: TrialRecord, outcome: TrialOutcome | None = None) -> None:
    """Take a record into account: fidelity by numerics key, and the incumbent."""
    measurement = record.measurement
    if record.numerics_key is not None and measurement is not None and measurement.fidelity is not None:
        session.fidelity.setdefault(record.numerics_key, measurement.fidelity)
    if record.state != "measured" or record.value is None or measurement is None:
        return
    if not is_feasible(measurement, session.plan.objective):
        return
    known = session.anchor.incumbent
    if known is None or record.value < known.value:
        call_s = measurement.latency_s.p50 or measurement.latency_s.mean or math.inf
        fastest_s = outcome.warmed.fastest_s if outcome is not None and outcome.warmed is not None else call_s
        session.anchor.incumbent = Incumbent(record.config, record.value, call_s, fastest_s)
