"""Plays searches on drawn and recorded courses in virtual time, keeps every run, prints the table; measures nothing.

`python studies/bakeoff.py play --for-s 150` goes on where the last call ended; `… table` prints what there is.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import optuna
from bakeoff_arenas import arena
from bakeoff_searches import SEARCHES

HERE = Path(__file__).parent
RUNS = HERE / "bakeoff.runs.jsonl"
WITHIN = 0.05
AT = 60
RESAMPLES = 2000


def play(searches: list[str], courses: list[int | str], seeds: range, for_s: float) -> None:
    """Play what is not yet kept, and keep it, for so many seconds."""
    ends = time.monotonic() + for_s
    done = {(run["search"], run["course"], run["seed"]) for run in kept()}
    with RUNS.open("a", encoding="utf-8") as file:
        for seed in seeds:
            for number in courses:
                for name in searches:
                    if (name, number, seed) in done:
                        continue
                    if time.monotonic() > ends:
                        return
                    search, n = SEARCHES[name]
                    began = time.process_time()
                    steps = list(search(arena(number), seed, n))
                    raced = steps.pop() if steps[-1].is_race else steps[-1]
                    run = {
                        "search": name,
                        "course": number,
                        "seed": seed,
                        "cpu_s": round(time.process_time() - began, 2),
                        "seconds": [round(step.seconds, 1) for step in steps],
                        "regret": [round(step.regret, 4) for step in steps],
                        "raced": [round(raced.seconds, 1), round(raced.regret, 4)],
                        "stops": next((at for at, step in enumerate(steps, 1) if step.stops), None),
                    }
                    file.write(json.dumps(run) + "\n")
                    file.flush()
    print("all played")


def kept() -> list[dict]:  # type: ignore[type-arg]
    """Return the runs played so far."""
    return [json.loads(line) for line in RUNS.read_text(encoding="utf-8").splitlines()] if RUNS.exists() else []


def reached(run: dict) -> tuple[float, float]:  # type: ignore[type-arg]
    """Return trials and seconds until the regret was first within 5%, or those of the whole run."""
    for number, (seconds, regret) in enumerate(zip(run["seconds"], run["regret"], strict=True), start=1):
        if regret <= WITHIN:
            return number, seconds
    return len(run["seconds"]), run["seconds"][-1]


def table(kind: str, base: str = "ours (auto)") -> None:
    """Print one line a search: figures with 95% intervals by bootstrap over courses, then seeds."""
    grids = {name: grid_of(name, kind) for name in SEARCHES}
    if not grids[base]:
        return
    print(f"\n### {kind}\n")
    print(f"| search | runs | regret at {AT} median | p90 | trials to 5% | seconds to 5% | × ours in seconds |")
    print("|---|---|---|---|---|---|---|")
    for name, runs in grids.items():
        if not runs:
            continue
        flat = [run for group in runs.values() for run in group]
        regrets = [regret_at(run) for run in flat]
        trials, seconds = np.median([reached(run) for run in flat], axis=0)
        low, middle, high = ratio_interval(runs, grids[base])
        print(
            f"| {name} | {len(flat)} | {np.median(regrets):.1%} | {np.quantile(regrets, 0.9):.1%} | {trials:.0f} | "
            f"{seconds:.0f} | {middle:.2f} [{low:.2f}, {high:.2f}] |"
        )
    agreement(grids[base])


def kind_of(course: int | str) -> str:
    """Return the kind of a course."""
    return "drawn" if isinstance(course, int) else "widened traces" if course.startswith("wide ") else "traces"


def grid_of(name: str, kind: str) -> dict[int, list[dict]]:  # type: ignore[type-arg]
    """Return the runs of a search on courses of a kind, by course."""
    found: dict[int, list[dict]] = {}  # type: ignore[type-arg]
    for run in kept():
        if run["search"] == name and kind_of(run["course"]) == kind:
            found.setdefault(run["course"], []).append(run)
    return found


def regret_at(run: dict) -> float:  # type: ignore[type-arg]
    """Return the regret after 60 trials, and after the race of a search that ends there with one."""
    return float(run["raced"][1] if len(run["regret"]) <= AT else run["regret"][AT - 1])


def ratio_interval(runs: dict, base: dict) -> tuple[float, float, float]:  # type: ignore[type-arg]
    """Return the geometric mean ratio of seconds to those of `base` on the same courses, with its interval."""
    courses = sorted(set(runs) & set(base))
    logs = {c: ([np.log(reached(r)[1]) for r in runs[c]], [np.log(reached(r)[1]) for r in base[c]]) for c in courses}
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(RESAMPLES):
        picked = rng.choice(courses, len(courses))
        gaps = [
            np.mean(rng.choice(logs[c][0], len(logs[c][0]))) - np.mean(rng.choice(logs[c][1], len(logs[c][1])))
            for c in picked
        ]
        draws.append(np.exp(np.mean(gaps)))
    middle = np.exp(np.mean([np.mean(a) - np.mean(b) for a, b in logs.values()]))
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(middle), float(high)


def agreement(runs: dict) -> None:  # type: ignore[type-arg]
    """Print how often two seeds end within 3% of each other, and what the stop rule costs."""
    pairs = [
        abs(np.log1p(regret_at(a)) - np.log1p(regret_at(b))) <= np.log(1.03)
        for group in runs.values()
        for place, a in enumerate(group)
        for b in group[place + 1 :]
    ]
    if pairs:
        print(f"\ntwo seeds within 3%: {np.mean(pairs):.1%} of {len(pairs)} pairs")
    stopped = [
        (run["stops"], run["regret"][run["stops"] - 1]) for group in runs.values() for run in group if run["stops"]
    ]
    if stopped:
        at, regret = zip(*stopped, strict=True)
        print(
            f"stop rule: {len(stopped)} of {sum(map(len, runs.values()))} runs, at trial {np.median(at):.0f} (median), "
            f"regret there {np.median(regret):.1%} median, {np.quantile(regret, 0.9):.1%} p90"
        )


def main(arguments: list[str]) -> None:
    """Play or print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("play", "table"))
    parser.add_argument("--searches", default="", help="names by semicolon, all by default")
    parser.add_argument("--courses", type=int, default=9, help="how many are drawn")
    parser.add_argument("--traces", action="store_true", help="the recorded traces instead, and those widened")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--for-s", type=float, default=150.0)
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if chosen.what == "table":
        for kind in ("drawn", "traces", "widened traces"):
            table(kind)
    else:
        names = chosen.searches.split(";") if chosen.searches else list(SEARCHES)
        traces = sorted(file.name.removesuffix(".jsonl.gz") for file in (HERE / "traces").glob("*.jsonl.gz"))
        courses = [*traces, *(f"wide {name}" for name in traces)] if chosen.traces else list(range(chosen.courses))
        play(names, courses, range(chosen.seeds), chosen.for_s)


if __name__ == "__main__":
    main(sys.argv[1:])
