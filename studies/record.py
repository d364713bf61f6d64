"""Records a trace of one model on this host: one process a point, four more of those within 10% of the best.

`python studies/record.py MODEL NAME [--lengths 512] [--points 80] [--for-s 1500]`; go on with the same command. The
lines are in studies/NAME.trace.work, the finished trace in studies/traces/NAME.jsonl.gz. Run nothing else meanwhile.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benches import opened

from tuner.compare.trial import run_trial
from tuner.errors import TrialError
from tuner.plugins import plugin, space_file
from tuner.records.base import Scalar
from tuner.records.config import Config
from tuner.records.measurement import Failure
from tuner.replay.trace import Trace, TracedProcess, TraceHead, write_trace
from tuner.space.facts import facts_of_host, facts_of_model, facts_of_workload
from tuner.study.objective import violations
from tuner.tuning.engines import all_steps, dropped_steps
from tuner.tuning.planning import Plan
from tuner.tuning.session import TuningSession, now

HERE = Path(__file__).parent
NEAR = 0.10
MORE = 4


def main(arguments: list[str]) -> None:
    """Record until the time is over or everything is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("name")
    parser.add_argument("--lengths", type=int, default=128)
    parser.add_argument("--points", type=int, default=80)
    parser.add_argument("--for-s", type=float, default=1500.0)
    parser.add_argument("--backends", default=None)
    chosen = parser.parse_args(arguments)
    backends = tuple(chosen.backends.split(",")) if chosen.backends else None
    asked = {
        "model": chosen.model,
        "lengths": (chosen.lengths,),
        "budget_s": max(chosen.for_s, 900.0),
        "backends": backends,
    }
    with opened(HERE / f"{chosen.name}.trace.work", **asked) as session:
        plan, directory = session.plan, session.study.directory
        done = kept(directory)
        ends = time.monotonic() + chosen.for_s
        points = chosen_points(plan, chosen.points)
        for config in wanted(points, done):
            if time.monotonic() > ends:
                print(f"{len(done)} processes; time is over, go on with the same command")
                break
            process = traced(session, config)
            done.append(process)
            with (directory / "processes.jsonl").open("a", encoding="utf-8") as file:
                file.write(process.to_json() + "\n")
            shown = f"{process.value:+.3f}" if process.value is not None else process.failure
            print(f"{len(done)} {config.backend} {config.chain()} {config.session}: {shown}", flush=True)
        else:
            (HERE / "traces").mkdir(exist_ok=True)
            path = HERE / "traces" / f"{chosen.name}.jsonl.gz"
            write_trace(Trace(head_of(plan, chosen.name, str(session.rig.host_class)), tuple(done)), path)
            print(f"{path}: {len(done)} processes of {len(points)} points, {path.stat().st_size} bytes")


def chosen_points(plan: Plan, n: int) -> list[Config]:
    """Return the points to record: all if they are few, else those of screening and an even sample, always the same."""
    space = plan.space
    points = space.artifact_points()
    rest = space.sample(random.Random(0), 20_000)  # noqa: S311 - the same sample every time
    points += [point for point in rest if point not in points]
    return [space.to_config(point) for point in points[:n]]


def wanted(points: list[Config], done: list[TracedProcess]) -> Iterator[Config]:
    """Yield what is to be run next: every point once, then those near the best until each has five processes."""
    for config in points:
        if not any(item.config == config for item in done):
            yield config
    for round_number in range(MORE):
        for config, found in groups(points, done):
            best = min((sum(values) / len(values) for _, values in groups(points, done) if values), default=0.0)
            if found and sum(found) / len(found) <= best + NEAR and len(found) < round_number + 2:
                yield config


def groups(points: list[Config], done: list[TracedProcess]) -> list[tuple[Config, list[float]]]:
    """Return the values of every point so far."""
    return [(config, [i.value for i in done if i.config == config and i.value is not None]) for config in points]


def traced(session: TuningSession, config: Config) -> TracedProcess:
    """Run one process of a point to the end and return its line."""
    key = session.numerics_key(config)
    try:
        session.workshop.ensure(config)
        samples = None if key in session.fidelity else session.n_samples
        outcome = run_trial(config, session.anchor, session.rig, fidelity_samples=samples, allow_prune=False)
    except TrialError as error:
        failure = Failure(stage=error.stage, kind=error.kind, message=error.message)
        return TracedProcess(config=config, failure=failure)
    if outcome.fidelity is not None:
        session.fidelity[key] = outcome.fidelity
    measurement = outcome.measurement
    if measurement is not None:
        measurement = measurement.model_copy(update={"fidelity": session.fidelity.get(key)})
    cost = outcome.cost
    open_s = cost.open_s + cost.warm_s if cost is not None else outcome.measure_s
    return TracedProcess(
        config=config,
        ratios=outcome.ratios,
        value=outcome.value,
        call_s=measurement.latency_s.p50 if measurement is not None else None,
        anchor_id=outcome.anchor_id,
        build_s=built_s(session, config),
        open_s=open_s,
        measure_s=max(0.0, outcome.measure_s - open_s),
        violations=violations(measurement, session.plan.objective) if measurement is not None else {},
        failure=outcome.failure,
    )


def built_s(session: TuningSession, config: Config) -> float:
    """Return the seconds that all steps of an artifact took, whenever they were run."""
    found = [session.workshop.store.find(key) for key, _ in session.workshop.keys(config.artifact)]
    return sum(manifest.build_s for manifest in found if manifest is not None)


def head_of(plan: Plan, name: str, host_class: str) -> TraceHead:
    """Return the head of a trace."""
    sources = [plugin("tuner.backends", backend).space() for backend in plan.backends]  # type: ignore[attr-defined]
    sources += [step.space() for step in all_steps()]
    sources.append(space_file("process.toml"))
    machine: dict[str, Scalar] = {"cpu": plan.host.cpu_model, "cpus": plan.host.cpu_budget, "host_class": host_class}
    facts = {
        "host": facts_of_host(plan.host),
        "model": facts_of_model(plan.model),
        "workload": facts_of_workload(plan.workload),
    }
    return TraceHead.model_validate(
        {
            "name": name,
            "space_files": {source.name: source.read_text(encoding="utf-8") for source in sources},
            "facts": facts,
            "backends": tuple(plan.backends),
            "dropped_steps": tuple(dropped_steps(plan.model.kind)),
            "space_sha256": plan.space_sha256,
            "n_points": plan.space.size(),
            "baseline": plan.baseline,
            "target": plan.objective.target,
            "versions": plan.versions,
            "machine": machine,
            "recorded_at": now(),
        }
    )


def kept(directory: Path) -> list[TracedProcess]:
    """Return the processes recorded so far; a line cut short is run again."""
    file = directory / "processes.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [TracedProcess.from_json(line) for line in lines if line.endswith("}")]


if __name__ == "__main__":
    main(sys.argv[1:])
