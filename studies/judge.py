"""Judges by fresh paired playoffs: every engine and scheme of a trace against the default, or a tuned best against it.

    python studies/judge.py table MODEL TRACE [--lengths 128] [--batch 1] [--out judged.jsonl]
    python studies/judge.py tuned MODEL TRACE --profile p.json [--rivals 3]

`table` takes the fastest recorded config of each engine and scheme (ratio: time of the default over its own); `tuned`
plays the best recorded ones against the profile's best (ratio: time of the tuned one over theirs; wanted: below 1.03).
TRACE is a name in studies/traces. One line of JSON a playoff; what --out holds already is not played again. Run nothing
else meanwhile.
"""

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from benches import opened

from tuner.compare.playoff import run_playoff
from tuner.compare.trial import run_trial
from tuner.errors import TrialError
from tuner.loading.files import read_profile
from tuner.records.config import Config
from tuner.records.measurement import Measurement
from tuner.replay.trace import Trace, read_trace
from tuner.tuning.session import TuningSession

HERE = Path(__file__).parent
PAIRS = (5,)
PRECISIONS = ("precision", "inference_precision", "compute_type")


def scheme(config: Config) -> str:
    """Return engine, steps and precision in one line."""
    kept = [str(config.session[name]) for name in PRECISIONS if name in config.session]
    steps = [
        " ".join([call.step, *(str(value) for key, value in call.settings.items() if key in PRECISIONS)])
        for call in config.artifact
    ]
    return " · ".join([config.backend, *(steps or ["source"]), *kept])


def fastest_by_scheme(trace: Trace) -> dict[str, Config]:
    """Return the fastest recorded config of every scheme, fastest first."""
    found: dict[str, Config] = {}
    for _, config in ranked(trace):
        found.setdefault(scheme(config), config)
    return found


def ranked(trace: Trace, *, is_faithful: bool = False) -> list[tuple[float, Config]]:
    """Return mean value and config of what worked, fastest first; faithful ones alone if asked."""
    found = []
    for group in trace.by_config.values():
        values = [item.value for item in group if item.value is not None]
        misses = any(value > 0 for item in group for value in item.violations.values())
        if values and not (is_faithful and misses):
            found.append((fmean(values), group[0].config))
    return sorted(found, key=lambda item: item[0])


def judged(session: TuningSession, name: str, config: Config, rival: Config) -> dict[str, object]:
    """Play a config off against a rival and return the line."""
    try:
        for each in (config, rival):
            session.workshop.ensure(each)
        trial = run_trial(config, session.anchor, session.rig, fidelity_samples=session.n_samples, allow_prune=False)
        session.anchor.release()
        outcome = run_playoff(config, rival, session.rig, looks=PAIRS)
    except TrialError as error:
        return {"name": name, "failure": str(error)}
    if trial.measurement is None or outcome.candidate is None or outcome.speedup is None:
        return {"name": name, "failure": str(trial.failure or outcome.failure)}
    return {
        "name": name,
        **figures(outcome.candidate),
        "cosine_min": trial.fidelity.cosine_min if trial.fidelity is not None else None,
        "ratio": round(outcome.speedup.ratio, 3),
        "ci95": [round(value, 3) for value in outcome.speedup.ci95],
    }


def figures(measurement: Measurement) -> dict[str, object]:
    """Return p50, load and memory."""
    return {
        "p50_ms": round((measurement.latency_s.p50 or math.nan) * 1e3, 3),
        "load_s": round(measurement.load_s or math.nan, 3),
        "rss_mib": round((measurement.peak_rss_bytes or 0) / 2**20),
    }


def jobs(chosen: argparse.Namespace, trace: Trace, default: Config) -> Iterator[tuple[str, Config, Config]]:
    """Yield what is played: a name, a config, its rival."""
    if chosen.what == "table":
        for name, config in fastest_by_scheme(trace).items():
            yield name, config, default
        return
    tuned = read_profile(chosen.profile).best.config
    for number, (_, rival) in enumerate(ranked(trace, is_faithful=True)[: chosen.rivals], 1):
        if rival != tuned:
            yield f"{chosen.profile.name}: best of {number}: {scheme(rival)} {dict(rival.session)}", rival, tuned


def main() -> None:
    """Play what is not yet in --out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("table", "tuned"))
    parser.add_argument("model")
    parser.add_argument("trace")
    parser.add_argument("--lengths", type=int, default=128)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--profile", type=Path)
    parser.add_argument("--rivals", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "judged.jsonl")
    chosen = parser.parse_args()
    trace = read_trace(HERE / "traces" / f"{chosen.trace}.jsonl.gz")
    asked = {"model": chosen.model, "lengths": (chosen.lengths,), "batch_size": chosen.batch, "budget_s": 900.0}
    workload = f"{chosen.trace} {chosen.lengths} x {chosen.batch}"
    lines = chosen.out.read_text(encoding="utf-8").splitlines() if chosen.out.exists() else []
    done = {(line["workload"], line["name"]) for line in map(json.loads, lines)}
    with opened(HERE / f"{chosen.trace}.judge.work", **asked) as session:
        for name, config, rival in jobs(chosen, trace, session.plan.baseline):
            if (workload, name) in done:
                continue
            line = {"workload": workload, "what": chosen.what, **judged(session, name, config, rival)}
            with chosen.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
