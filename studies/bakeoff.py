"""Plays searches on drawn and recorded courses in virtual time, keeps every run, prints the table; measures nothing.

`python studies/bakeoff.py play --for-s 150` goes on where the last call ended; `… table` prints what there is.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import optuna

from tuner.replay.trace import Trace, read_trace
from tuner.replay.trace_course import Course, Played, Player
from tuner.replay.trace_landscape import Relief, draw_course
from tuner.space.domains import Domain
from tuner.space.loading import load_space
from tuner.space.parameters import Value
from tuner.space.resolved import ResolvedSpace
from tuner.study.encoding import PointTable
from tuner.study.portfolio import ROTATION, Arm
from tuner.study.searching import Searcher
from tuner.study.trying import PAIRS, PROCESS_SD, Tried

HERE = Path(__file__).parent
RUNS = HERE / "bakeoff.runs.jsonl"
WITHIN = 0.05
AT = 60
RESAMPLES = 2000
REASKS = 300
RELIEFS = (
    Relief(),
    Relief(setting=0.08, pair=0.035),
    Relief(setting=0.08, inert=0.4, pair=0.05, rest=0.015),
)
"""Smooth, with interactions, rugged: one after another."""


@dataclass(frozen=True)
class Arena:
    """A space, its table and one course."""

    space: ResolvedSpace
    table: PointTable
    course: Course

    def seeds(self) -> list[int]:
        """Return the rows that screening starts with."""
        return [row for row in map(self.table.row_of, self.space.artifact_points()) if row is not None]


@dataclass(frozen=True)
class Step:
    """After a trial: seconds so far, the regret of what the search would ship, whether it would stop."""

    seconds: float
    regret: float
    stops: bool = False


Search = Callable[[Arena, int, int], Iterator[Step]]


@cache
def drawn_space(cpus: int) -> tuple[ResolvedSpace, PointTable]:
    """Return the made-up space on so many CPUs."""
    files = sorted((HERE / "spaces").glob("*.toml"))
    space = load_space(files).resolve({"cpu_budget": cpus, "physical_cores": cpus}, {}, {})
    return space, PointTable(space, space.enumerate())


@cache
def arena(course: int | str, cpus: int = 4) -> Arena:
    """Return a course: a number draws one, a name is a recorded trace, ``wide NAME`` that with made-up minor knobs."""
    if isinstance(course, str):
        trace = read_trace(HERE / "traces" / f"{course.removeprefix('wide ')}.jsonl.gz")
        return widened(trace) if course.startswith("wide ") else recorded(trace)
    number = course
    space, table = drawn_space(cpus)
    relief = RELIEFS[number % len(RELIEFS)]
    return Arena(space, table, draw_course(space, table.points, seed=number, relief=relief, n_cores=cpus))


def recorded(trace: Trace) -> Arena:
    """Return the course of a trace: the recorded points alone."""
    space = trace.space()
    known = [(config, space.to_point(config)) for config in trace.configs()]
    table = PointTable(space, [point for _, point in known if point is not None])
    return Arena(space, table, trace.course([config for config, point in known if point is not None]))


def widened(trace: Trace, n_knobs: int = 6) -> Arena:
    """Return the recorded points times `n_knobs` made-up switches, half of them without effect."""
    base = recorded(trace)
    knobs = "\n".join(
        f'[process.env.MADE_UP_{knob}]\nkind = "choice"\nvalues = ["0", "1"]\n' for knob in range(n_knobs)
    )
    space = trace.space({"made_up.toml": f'schema = "tuner.space/1"\n{knobs}'})
    rng = np.random.default_rng(len(base.table))
    effects = rng.normal(0, 0.03, (n_knobs, 2)) * (np.arange(n_knobs) % 2)[:, None]
    points, origins, extra = [], [], []
    for row, point in enumerate(base.table.points):
        for values in product((0, 1), repeat=n_knobs):
            points.append(point | {f"process.env.MADE_UP_{knob}": str(value) for knob, value in enumerate(values)})
            origins.append(row)
            extra.append(sum(effects[knob, value] for knob, value in enumerate(values)))
    course, rows = base.course, np.array(origins)
    wide = replace(
        course,
        name=f"wide {course.name}",
        truth=course.truth[rows] + np.array(extra),
        is_faithful=course.is_faithful[rows],
        artifact=course.artifact[rows],
        build_s=course.build_s[rows],
        open_s=course.open_s[rows],
        measure_s=course.measure_s[rows],
        failure=tuple(course.failure[row] for row in origins),
    )
    return Arena(space, PointTable(space, points), wide)


def tried(played: Played) -> Tried:
    """Return a played trial as the search sees it."""
    if played.value is None:
        return Tried(played.point, None, label="failed", cause=played.failure)
    pair_sd = max(played.pair_sd, PROCESS_SD / 2)
    sd = (PROCESS_SD**2 + pair_sd**2 / PAIRS) ** 0.5
    return Tried(played.point, played.value, sd, "feasible" if played.is_faithful else "unfaithful")


def ours(rotation: tuple[Arm, ...], *, screen: bool = True) -> Search:
    """Return our search with a rotation, with or without screening of artifacts beyond the seeds."""

    def run(place: Arena, seed: int, n: int) -> Iterator[Step]:
        player = Player(place.course, seed=seed)
        searcher = Searcher(place.table, seeds=place.seeds(), seed=seed, rotation=rotation)
        searcher.is_screening = screen
        searcher.costs.built = {int(a) for a in np.unique(place.table.artifacts[place.course.build_s == 0])}
        stops = False
        for _ in range(n):
            found = searcher.next()
            if found is None:
                return
            played = player.play(found[0])
            searcher.note(tried(played), build_s=played.build_s, trial_s=played.seconds - played.build_s)
            best = searcher.portfolio.incumbent()
            stops = stops or searcher.should_stop() is not None
            yield Step(
                player.elapsed_s, place.course.regret(None if best is None or best[1] > 0 else best[0]), stops=stops
            )

    return run


def by_optuna(make: Callable[[int], optuna.samplers.BaseSampler], *, screen: bool, dedupe: bool) -> Search:
    """Return a search by one of Optuna's samplers; broken rules cost nothing, repeats do unless `dedupe`."""

    def run(place: Arena, seed: int, n: int) -> Iterator[Step]:
        player = Player(place.course, seed=seed)
        study = optuna.create_study(sampler=make(seed), direction="minimize")
        queue = place.seeds() if screen else []
        best: tuple[float, int | None] = (0.0, None)
        seen: dict[int, Played] = {}
        for _ in range(n):
            trial, row = ask(study, place, queue, seen if dedupe else {})
            played = seen[row] = player.play(row)
            report(study, trial, played)
            if played.value is not None and played.is_faithful and played.value < best[0]:
                best = played.value, row
            yield Step(player.elapsed_s, place.course.regret(best[1]))

    return run


def ask(study: optuna.Study, place: Arena, queue: list[int], seen: dict[int, Played]) -> tuple[optuna.Trial, int]:
    """Return a trial at a valid row: of the queue, else of the sampler, asked again on broken rules and repeats."""
    for _ in range(REASKS):
        if queue:
            study.enqueue_trial(named_values(place, queue.pop(0)))
        trial = study.ask()
        point = place.space.suggest(lambda name, domain, trial=trial: suggest(trial, name, domain))  # type: ignore[misc]
        row = place.table.row_of(point)
        if row is not None and row not in seen and not place.space.violations(point):
            return trial, row
        if row is not None and row in seen:
            report(study, trial, seen[row])
        else:
            trial.set_constraint("ok", 1.0)
            trial.set_constraint("fidelity", 1.0)
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    left = [row for row in range(len(place.table)) if row not in seen]
    study.enqueue_trial(named_values(place, left[len(left) // 2]))
    trial = study.ask()
    place.space.suggest(lambda name, domain: suggest(trial, name, domain))
    return trial, left[len(left) // 2]


def named_values(place: Arena, row: int) -> dict[str, Value]:
    """Return the values of a row by the names that Optuna knows."""
    point, named = place.table.points[row], {}

    def choose(name: str, domain: Domain) -> Value:
        named[name] = point.get(name.rpartition("/")[2], domain.values[0])
        return named[name]

    place.space.suggest(choose)
    return named


def suggest(trial: optuna.Trial, name: str, domain: Domain) -> Value:
    """Choose a value as a user of Optuna would."""
    values = domain.values
    if isinstance(values, range) and len(values) > 1:
        number: int = trial.suggest_int(name, values[0], values[-1], step=values.step)
        return number
    value: Value = trial.suggest_categorical(name, list(values))
    return value


def report(study: optuna.Study, trial: optuna.Trial, played: Played) -> None:
    """Tell a played trial."""
    trial.set_constraint("ok", 1.0 if played.value is None else 0.0)
    trial.set_constraint("fidelity", 0.0 if played.is_faithful else 1.0)
    if played.value is None:
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    else:
        study.tell(trial, played.value)


def at_random(place: Arena, seed: int, n: int) -> Iterator[Step]:
    """Try points at random, none twice."""
    player = Player(place.course, seed=seed)
    best: tuple[float, int | None] = (0.0, None)
    for row in np.random.default_rng(seed).permutation(len(place.table))[:n].tolist():
        played = player.play(row)
        if played.value is not None and played.is_faithful and played.value < best[0]:
            best = played.value, row
        yield Step(player.elapsed_s, place.course.regret(best[1]))


SEARCHES: dict[str, tuple[Search, int]] = {
    "random": (at_random, 150),
    "TPE": (by_optuna(lambda seed: optuna.samplers.TPESampler(seed=seed), screen=False, dedupe=False), 120),
    "TPE, group, dedupe, screen": (
        by_optuna(
            lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True), screen=True, dedupe=True
        ),
        100,
    ),
    "GPSampler": (by_optuna(lambda seed: optuna.samplers.GPSampler(seed=seed), screen=False, dedupe=False), 80),
    "ours (auto)": (ours(ROTATION), 60),
    "ours: process only": (ours(("gaussian",)), 60),
    "ours: process, neighbours": (ours(("gaussian", "gaussian", "gaussian", "neighbour")), 60),
    "ours: process, trees": (ours(("gaussian", "gaussian", "gaussian", "forest")), 60),
    "ours: trees only": (ours(("forest",)), 60),
    "ours: neighbours only": (ours(("neighbour",)), 60),
    "ours: seeds only, no further screening": (ours(ROTATION, screen=False), 60),
}
"""Search and most trials; a run that never comes within 5% counts with all its seconds, which favours it."""


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
                    run = {
                        "search": name,
                        "course": number,
                        "seed": seed,
                        "cpu_s": round(time.process_time() - began, 2),
                        "seconds": [round(step.seconds, 1) for step in steps],
                        "regret": [round(step.regret, 4) for step in steps],
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
    """Return the regret after 60 trials."""
    return float(run["regret"][min(AT, len(run["regret"])) - 1])


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
