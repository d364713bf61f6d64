"""A race: rounds of one fresh trial of every finalist, dropping those shown to be behind; it declares no winner."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from tuner.compare.anchor import Anchor
from tuner.compare.rig import Rig
from tuner.compare.trial import TrialOutcome, run_trial
from tuner.measure.stats import mean_interval
from tuner.records.config import Config

MAX_FINALISTS = 8
MAX_ROUNDS = 8
DROP_FROM_ROUND = 3
DROP_ALPHA = 0.01
RACE_WITHIN = 0.05
"""Log-ratio to the best expected value within which a config races in any case."""
RACE_SDS = 2.0
"""Standard deviations of the difference within which the search cannot tell a config from the best."""


@dataclass(frozen=True)
class RaceOutcome:
    """What a race found.

    Attributes:
        ranking: Indices of the finalists, best first; dropped ones after those still in, failed ones last.
        values: Every finalist's values by round (only race data).
        trials: All trials in order.
        rounds: Rounds finished by those still in.
        stopped_by: ``one_left``, ``rounds`` or ``time``.
    """

    ranking: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    trials: tuple[TrialOutcome, ...]
    rounds: int
    stopped_by: Literal["one_left", "rounds", "time"]


def near_best(expected: Sequence[float], sd: Sequence[float], most: int) -> list[int]:
    """Return the indices of those that may be the best, best first.

    Args:
        expected: Log-ratio that the search expects of each.
        sd: How sure it is of that.
        most: How many may race.
    """
    order = sorted(range(len(expected)), key=expected.__getitem__)
    best = order[0]
    return [
        index
        for index in order
        if expected[index] - expected[best] <= max(RACE_WITHIN, RACE_SDS * math.hypot(sd[index], sd[best]))
    ][:most]


def run_race(
    finalists: Sequence[Config],
    anchor: Anchor,
    rig: Rig,
    *,
    deadline_s: float | None = None,
    expected_trial_s: float = 0.0,
    max_rounds: int = MAX_ROUNDS,
) -> RaceOutcome:
    """Race the finalists; each round runs each of them once, in an order that rotates.

    From round 3 a finalist is dropped when its values are behind the leader's by a paired one-sided t test at
    .01 / k (k finalists still in; after irace and SMAC's intensification).

    Args:
        finalists: At most 8 are wise, best first by the search.
        anchor: The resident baseline.
        rig: The bench.
        deadline_s: Clock time; a round that would not end before it is not begun.
        expected_trial_s: Seconds of one trial, from the search.
        max_rounds: Most rounds.
    """
    values: list[list[float]] = [[] for _ in finalists]
    alive, dropped, failed = list(range(len(finalists))), [], []
    trials: list[TrialOutcome] = []
    rounds = 0
    stopped_by: Literal["one_left", "rounds", "time"] = "rounds"
    while rounds < max_rounds:
        if len(alive) < 2:  # noqa: PLR2004 - nobody to race against
            stopped_by = "one_left"
            break
        if deadline_s is not None and rig.clock.now() + len(alive) * expected_trial_s > deadline_s:
            stopped_by = "time"
            break
        began = rig.clock.now()
        turn = rounds % len(alive)
        for index in [*alive[turn:], *alive[:turn]]:
            trials.append(run_trial(finalists[index], anchor, rig, allow_prune=False))
            value = trials[-1].value
            if value is None:
                failed.append(index)
            else:
                values[index].append(value)
        expected_trial_s = (rig.clock.now() - began) / len(alive)
        alive = [index for index in alive if index not in failed]
        rounds += 1
        rig.tell("round", number=rounds, alive=len(alive))
        if rounds >= DROP_FROM_ROUND and alive:
            slower = behind(values, alive)
            dropped += slower
            alive = [index for index in alive if index not in slower]
            for index in slower:
                rig.tell("dropped", finalist=index, round=rounds)
    order = [*by_mean(values, alive), *by_mean(values, dropped), *failed]
    return RaceOutcome(tuple(order), tuple(map(tuple, values)), tuple(trials), rounds, stopped_by)


def by_mean(values: Sequence[Sequence[float]], indices: Sequence[int]) -> list[int]:
    """Sort by the mean of the race's values; without any, the order given (the search's) stays."""
    return sorted(indices, key=lambda index: fmean(values[index]) if values[index] else 0.0)


def behind(values: Sequence[Sequence[float]], alive: Sequence[int]) -> list[int]:
    """Return the finalists that are shown to be behind the leader."""
    leader = by_mean(values, alive)[0]
    alpha = DROP_ALPHA / len(alive)
    found = []
    for index in alive:
        gaps = [mine - best for mine, best in zip(values[index], values[leader], strict=True)]
        if index != leader and mean_interval(gaps, alpha).low > 0:
            found.append(index)
    return found
