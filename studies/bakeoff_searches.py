"""The searches of the bake-off: ours, Optuna's samplers as a user would call them, and chance."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import optuna
from bakeoff_arenas import Arena

from tuner.compare.race import DROP_FROM_ROUND, MAX_FINALISTS, MAX_ROUNDS, behind, by_mean, near_best
from tuner.replay.trace_course import Played, Player
from tuner.space.domains import Domain
from tuner.space.parameters import Value
from tuner.study.portfolio import ROTATION, Arm
from tuner.study.searching import Searcher
from tuner.study.trying import PROCESS_SD, Tried

RACE_SHARE = 0.25
"""Seconds of the race over those of the search: 15% of a budget beside the 60% that the search has."""
REASKS = 20
"""Times that a sampler is asked again after a repeat or a broken rule, before a neighbour is taken."""


@dataclass(frozen=True)
class Step:
    """After a trial: seconds so far, the regret of what the search would ship, whether it would stop.

    Attributes:
        is_race: The last step of a search that races its best before it ships one of them.
    """

    seconds: float
    regret: float
    stops: bool = False
    is_race: bool = False


Search = Callable[[Arena, int, int], Iterator[Step]]


def tried(played: Played) -> Tried:
    """Return a played trial as the search sees it."""
    if played.value is None:
        return Tried(played.point, None, label="failed", cause=played.failure)
    label = "feasible" if played.is_faithful else "unfaithful"
    return Tried(played.point, played.value, PROCESS_SD, label, pair_sd=played.pair_sd)


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
        first = leader(player, searcher)
        yield Step(player.elapsed_s, place.course.regret(first), is_race=True)

    return run


def leader(player: Player, searcher: Searcher) -> int | None:
    """Race the best of a search as the tuner does and return the row that leads, None where none beats the baseline."""
    posterior = searcher.portfolio.posterior()
    known = [item.row for item in searcher.portfolio.trials.known() if item.label == "feasible" and item.is_whole]
    if posterior is None or not known:
        return None
    rows = [known[place] for place in near_best(posterior.mean[known], posterior.sd[known], MAX_FINALISTS)]
    values: list[list[float]] = [[] for _ in rows]
    alive = list(range(len(rows)))
    ends_s, trial_s = (1 + RACE_SHARE) * player.elapsed_s, float(np.median(searcher.costs.by_row()[rows]))
    for number in range(1, MAX_ROUNDS + 1):
        if len(alive) == 1 or player.elapsed_s + len(alive) * trial_s > ends_s:
            break
        for index in alive:
            values[index].append(player.play(rows[index]).value or 0.0)
        if number >= DROP_FROM_ROUND:
            slower = behind(values, alive)
            alive = [index for index in alive if index not in slower]
    first = by_mean(values, alive)[0]
    expected = float(np.mean(values[first])) if values[first] else float(posterior.mean[rows[first]])
    return rows[first] if expected < 0 else None


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
    """Return a trial at a row of the table: of the queue, else of the sampler, asked again on broken rules and repeats.

    A valid point that was not recorded stands for the recorded one that agrees in most values.
    """
    for _ in range(REASKS):
        if queue:
            study.enqueue_trial(named_values(place, queue.pop(0)))
        trial = study.ask()
        point = place.space.suggest(lambda name, domain, trial=trial: suggest(trial, name, domain))  # type: ignore[misc]
        row = None if place.space.violations(point) else nearest(place, point)
        if row is not None and row not in seen:
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


def nearest(place: Arena, point: dict[str, Value]) -> int:
    """Return the row of a point, or of the recorded point that agrees with it in most values."""
    row = place.table.row_of(point)
    if row is not None:
        return row
    agreeing = [sum(other.get(key) == value for key, value in point.items()) for other in place.table.points]
    return int(np.argmax(agreeing))


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
