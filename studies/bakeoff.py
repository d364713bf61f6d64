"""Compares searches on drawn and recorded courses in virtual time and prints a table; it measures nothing."""

# ruff: noqa: INP001, T201 - a script, and its table is printed
import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import optuna

from tuner.replay.trace_course import Course, Played, Player
from tuner.replay.trace_landscape import Relief, draw_course
from tuner.space.loading import load_space
from tuner.space.resolved import ResolvedSpace
from tuner.study.encoding import PointTable
from tuner.study.portfolio import Arm
from tuner.study.searching import Searcher
from tuner.study.trying import PAIRS, PROCESS_SD, Tried

HERE = Path(__file__).parent
SEARCHES: dict[str, "Search"] = {}
WITHIN = 0.05
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


@dataclass(frozen=True)
class Step:
    """After a trial: seconds so far, and the regret of what the search would ship."""

    seconds: float
    regret: float


Search = Callable[[Arena, int, int], Iterator[Step]]


@cache
def drawn(cpus: int) -> tuple[ResolvedSpace, PointTable]:
    """Return the made-up space on so many CPUs."""
    files = sorted((HERE / "spaces").glob("*.toml"))
    space = load_space(files).resolve({"cpu_budget": cpus, "physical_cores": cpus}, {}, {})
    return space, PointTable(space, space.enumerate())


@cache
def arena(number: int, cpus: int) -> Arena:
    """Return one drawn course."""
    space, table = drawn(cpus)
    relief = RELIEFS[number % len(RELIEFS)]
    return Arena(space, table, draw_course(space, table.points, seed=number, relief=relief, n_cores=cpus))


def tried(played: Played) -> Tried:
    """Return a played trial as the search sees it."""
    if played.value is None:
        return Tried(played.point, None, label="failed", cause=played.failure)
    pair_sd = max(played.pair_sd, PROCESS_SD / 2)
    sd = (PROCESS_SD**2 + pair_sd**2 / PAIRS) ** 0.5
    return Tried(played.point, played.value, sd, "feasible" if played.is_faithful else "unfaithful")


def ours(
    rotation: tuple[Arm, ...], *, screen: bool = True, record_stop: list[tuple[int, float]] | None = None
) -> Search:
    """Return our search with a rotation."""

    def run(place: Arena, seed: int, n: int) -> Iterator[Step]:
        table, player = place.table, Player(place.course, seed=seed)
        seeds = [row for row in map(table.row_of, place.space.artifact_points()) if row is not None]
        searcher = Searcher(table, seeds=seeds, seed=seed, rotation=rotation)
        searcher.is_screening = screen
        searcher.costs.built = {int(a) for a in np.unique(table.artifacts[place.course.build_s == 0])}
        has_stopped = False
        for number in range(n):
            found = searcher.next()
            if found is None:
                return
            played = player.play(found[0])
            searcher.note(tried(played), build_s=played.build_s, trial_s=played.seconds - played.build_s)
            best = searcher.portfolio.incumbent()
            regret = place.course.regret(None if best is None or best[1] > 0 else best[0])
            if record_stop is not None and not has_stopped and searcher.should_stop():
                has_stopped = True
                record_stop.append((number, regret))
            yield Step(player.elapsed_s, regret)

    return run


def optuna_search(make: Callable[[int], optuna.samplers.BaseSampler], *, screen: bool, dedupe: bool) -> Search:
    """Return a search by one of Optuna's samplers; broken rules cost nothing, repeats do unless `dedupe`."""

    def run(place: Arena, seed: int, n: int) -> Iterator[Step]:
        space, table, player = place.space, place.table, Player(place.course, seed=seed)
        study = optuna.create_study(sampler=make(seed), direction="minimize")
        queue = [row for row in map(table.row_of, space.artifact_points()) if row is not None] if screen else []
        best: tuple[float, int | None] = (0.0, None)
        seen: dict[int, Played] = {}
        for _ in range(n):
            for _attempt in range(100):
                if queue:
                    row = queue.pop(0)
                    trial = enqueue(study, space, table, row)
                    break
                trial = study.ask()
                point = space.suggest(lambda name, domain, trial=trial: suggest(trial, name, domain))
                found = table.row_of(point)
                if found is None:
                    trial.set_constraint("ok", 1.0)
                    study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                    continue
                row = found
                if dedupe and row in seen:
                    report(study, trial, seen[row])
                    continue
                break
            played = player.play(row)
            seen[row] = played
            report(study, trial, played)
            if played.value is not None and played.is_faithful and played.value < best[0]:
                best = played.value, row
            yield Step(player.elapsed_s, place.course.regret(best[1]))

    return run


def suggest(trial: optuna.Trial, name: str, domain: object) -> object:
    """Choose a value as a user of Optuna would."""
    values = domain.values  # type: ignore[attr-defined]
    if isinstance(values, range) and len(values) > 1:
        return trial.suggest_int(name, values[0], values[-1], step=values.step)
    return trial.suggest_categorical(name, list(values))


def enqueue(study: optuna.Study, space: ResolvedSpace, table: PointTable, row: int) -> optuna.Trial:
    """Open a trial at a row."""
    point, named = table.points[row], {}

    def choose(name: str, domain: object) -> object:
        named[name] = point.get(name.rpartition("/")[2], domain.values[0])  # type: ignore[attr-defined]
        return named[name]

    space.suggest(choose)  # type: ignore[arg-type]
    study.enqueue_trial(named)
    trial = study.ask()
    space.suggest(lambda name, domain: suggest(trial, name, domain))  # type: ignore[arg-type,return-value]
    return trial


def report(study: optuna.Study, trial: optuna.Trial, played: Played) -> None:
    """Tell a played trial."""
    trial.set_constraint("ok", 1.0 if played.value is None else 0.0)
    trial.set_constraint("fidelity", 0.0 if played.is_faithful else 1.0)
    if played.value is None:
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    else:
        study.tell(trial, played.value)


def random_search(place: Arena, seed: int, n: int) -> Iterator[Step]:
    """Try points at random, none twice."""
    player = Player(place.course, seed=seed)
    best: tuple[float, int | None] = (0.0, None)
    for row in np.random.default_rng(seed).permutation(len(place.table))[:n]:
        played = player.play(int(row))
        if played.value is not None and played.is_faithful and played.value < best[0]:
            best = played.value, int(row)
        yield Step(player.elapsed_s, place.course.regret(best[1]))


SEARCHES |= {
    "random": random_search,
    "tpe": optuna_search(lambda seed: optuna.samplers.TPESampler(seed=seed), screen=False, dedupe=False),
    "tpe+dedupe+screen": optuna_search(
        lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True), screen=True, dedupe=True
    ),
    "gp": optuna_search(lambda seed: optuna.samplers.GPSampler(seed=seed), screen=False, dedupe=False),
    "ours": ours(("gaussian", "gaussian", "forest", "gaussian", "neighbour")),
    "ours g": ours(("gaussian",)),
    "ours gn": ours(("gaussian", "gaussian", "gaussian", "neighbour")),
    "ours f": ours(("forest",)),
    "ours n": ours(("neighbour",)),
    "ours no screen": ours(("gaussian", "gaussian", "forest", "gaussian", "neighbour"), screen=False),
}


def summary(runs: list[list[Step]], at: int) -> dict[str, float]:
    """Return the figures of some runs: regret after `at` trials, trials and seconds to within 5%."""
    regrets = [run[min(at, len(run)) - 1].regret for run in runs]
    reached = [first_within(run) for run in runs]
    return {
        "median": float(np.median(regrets)),
        "p90": float(np.quantile(regrets, 0.9)),
        "evals": float(np.median([item[0] for item in reached])),
        "seconds": float(np.median([item[1] for item in reached])),
        "reached": float(np.mean([item[2] for item in reached])),
    }


def first_within(run: list[Step]) -> tuple[int, float, bool]:
    """Return trials and seconds until the regret was within 5%; all of them, and False, if never."""
    for number, step in enumerate(run, start=1):
        if step.regret <= WITHIN:
            return number, step.seconds, True
    return len(run), run[-1].seconds, False


def main(arguments: list[str]) -> None:
    """Run searches on courses and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--searches", default="random,tpe,tpe+dedupe+screen,gp,ours")
    parser.add_argument("--courses", default="0-5")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--cpus", type=int, default=4)
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    low, _, high = chosen.courses.partition("-")
    for name in chosen.searches.split(","):
        began = time.process_time()
        every: list[list[Step]] = []
        for number in range(int(low), int(high or low) + 1):
            runs = [
                list(SEARCHES[name](arena(number, chosen.cpus), seed, chosen.trials)) for seed in range(chosen.seeds)
            ]
            every += runs
        figures = summary(every, 60) | {"cpu_s": (time.process_time() - began) / len(every)}
        print(name, json.dumps({key: round(value, 3) for key, value in figures.items()}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
