"""What a search would meet at every point of a space: times, costs, failures; played in virtual time.

A course comes from a recorded trace or from `trace_landscape`; nothing is measured here.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["Course", "Played", "Player"]

RUGGED_PAIRS = 2


@dataclass(frozen=True)
class Course:
    """Arrays by point.

    Attributes:
        truth: ln(time / time of the baseline), NaN where the point fails.
        is_faithful: Whether its outputs keep the limit.
        artifact: Number of the artifact it opens.
        build_s: Seconds to build that artifact, 0 if there is nothing to build.
        open_s: Seconds from the start of a process to its first block.
        measure_s: Seconds of its blocks.
        failure: Message by point, empty where it works.
        process_sd: Spread of the processes of one point (log).
        block_sd: Spread of the block pairs of one process (log).
        block_sds: That of every recorded process, one of which is drawn for a trial: most are calm, some are not.
    """

    name: str
    truth: np.ndarray
    is_faithful: np.ndarray
    artifact: np.ndarray
    build_s: np.ndarray
    open_s: np.ndarray
    measure_s: np.ndarray
    failure: tuple[str, ...]
    process_sd: float = 0.01
    block_sd: float = 0.01
    block_sds: tuple[float, ...] = ()
    fidelity_s: float = 2.0

    @property
    def best(self) -> float:
        """The lowest true value of a faithful point."""
        return float(np.min(self.truth[self.is_faithful & np.isfinite(self.truth)]))

    def regret(self, point: int | None) -> float:
        """Return time over the best time, minus 1; that of the baseline for None, infinity for an unfaithful point."""
        if point is None:
            return float(np.exp(max(0.0, -self.best)) - 1)
        if not self.is_faithful[point] or not np.isfinite(self.truth[point]):
            return float("inf")
        return float(np.exp(self.truth[point] - self.best) - 1)


@dataclass(frozen=True)
class Played:
    """One trial in virtual time.

    Attributes:
        value: Measured ln ratio, None if it failed.
        pair_sd: Spread of its block pairs.
        seconds: What it took, building included.
        build_s: Seconds of that for building.
    """

    point: int
    value: float | None
    pair_sd: float
    is_faithful: bool
    failure: str
    seconds: float
    build_s: float


class Player:
    """Plays trials on a course; the clock adds up.

    Args:
        course: The truth.
        seed: Of the noise.
    """

    def __init__(self, course: Course, *, seed: int) -> None:
        self.course = course
        self.rng = np.random.default_rng(seed)
        self.elapsed_s = 0.0
        self.built: set[int] = set()
        self._compared: set[int] = set()

    def is_built(self, point: int) -> bool:
        """Say whether the artifact of a point is there."""
        return not self.course.build_s[point] or int(self.course.artifact[point]) in self.built

    def play(self, point: int) -> Played:
        """Try a point."""
        course = self.course
        build_s = 0.0 if self.is_built(point) else float(course.build_s[point])
        self.built.add(int(course.artifact[point]))
        seconds = build_s + float(course.open_s[point])
        if course.failure[point]:
            self.elapsed_s += seconds
            return Played(
                point, None, 0.0, is_faithful=True, failure=course.failure[point], seconds=seconds, build_s=build_s
            )
        seconds += float(course.measure_s[point])
        if int(course.artifact[point]) not in self._compared:
            self._compared.add(int(course.artifact[point]))
            seconds += course.fidelity_s
        self.elapsed_s += seconds
        block_sd = float(self.rng.choice(course.block_sds)) if course.block_sds else course.block_sd
        pairs = course.truth[point] + self.rng.normal(0, course.process_sd) + self.rng.normal(0, block_sd, 2)
        is_faithful = bool(course.is_faithful[point])
        spread = float(np.std(pairs, ddof=1))
        return Played(point, float(np.mean(pairs)), spread, is_faithful, "", seconds, build_s)
