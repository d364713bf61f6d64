"""Chooses the next configuration: screening first, then Optuna's sampler without repeats; it measures nothing."""

import random
from collections import deque
from dataclasses import dataclass
from typing import Literal

from optuna.trial import Trial

from tuner.records.config import Config
from tuner.space.resolved import ResolvedSpace
from tuner.space.walking import Point
from tuner.study.optuna_study import TrialBook
from tuner.study.store import TrialRecord

REASKS = 5
LIST_LIMIT = 20_000
DISABLE_AFTER = 3


@dataclass(frozen=True)
class Suggestion:
    """A configuration to try and the Optuna trial that asked for it."""

    config: Config
    point: Point
    trial: Trial
    purpose: Literal["screen", "search"]


class Suggester:
    """Screening, then search.

    Args:
        book: The Optuna study.
        space: The resolved space.
        seed: Of the choices made here.
        records: What earlier runs of this study measured.
        sampler: ``auto``, ``tpe``, ``random`` or ``brute``.
    """

    def __init__(
        self, book: TrialBook, space: ResolvedSpace, *, seed: int, records: list[TrialRecord], sampler: str = "auto"
    ) -> None:
        self.book = book
        self.space = space
        self.sampler = sampler
        self._random = random.Random(seed)  # noqa: S311 - orders must repeat, not be secret
        self._known: dict[str, TrialRecord] = {}
        self._failures_in_a_row: dict[str, int] = {}
        self.disabled: dict[str, str] = {}
        self._told: set[str] = set()
        self._screen: deque[Point] = deque(space.artifact_points())
        self.is_listed = space.is_listed(LIST_LIMIT)
        listed = space.enumerate(LIST_LIMIT) if self.is_listed else []
        self._unvisited: dict[str, Point] = {space.to_config(point).digest(): point for point in listed}
        for record in records:
            self.note(record)

    def note(self, record: TrialRecord) -> None:
        """Take a finished trial into account: it is not suggested again; three failures in a row disable a backend."""
        digest = record.config.digest()
        self._known[digest] = record
        self._unvisited.pop(digest, None)
        backend = record.config.backend
        if record.state == "failed":
            self._failures_in_a_row[backend] = self._failures_in_a_row.get(backend, 0) + 1
            if self._failures_in_a_row[backend] >= DISABLE_AFTER and record.failure is not None:
                self.disabled.setdefault(backend, record.failure.message)
        else:
            self._failures_in_a_row[backend] = 0

    def newly_disabled(self) -> list[tuple[str, str]]:
        """Return the backends disabled since the last call, with the last failure's text."""
        fresh = [(name, reason) for name, reason in self.disabled.items() if name not in self._told]
        self._told |= set(self.disabled)
        return fresh

    def known(self, config: Config) -> TrialRecord | None:
        """Return what is known of a configuration."""
        return self._known.get(config.digest())

    def screening(self) -> list[Config]:
        """Return the screening configurations that are still to be run, in order."""
        return [self.space.to_config(point) for point in self._screen if not self._is_done(point)]

    def skip_screening(self, config: Config) -> None:
        """Leave a screening configuration to the search (its build does not fit the time for screening)."""
        self._screen = deque(point for point in self._screen if self.space.to_config(point) != config)

    def _is_done(self, point: Point) -> bool:
        return self.space.to_config(point).digest() in self._known or str(point["backend"]) in self.disabled

    def next(self) -> Suggestion | None:
        """Return the next configuration, None when the space is exhausted."""
        while self._screen:
            point = self._screen.popleft()
            if not self._is_done(point):
                return self._suggestion(point, "screen")
        if self.sampler != "brute":
            for _ in range(REASKS):
                trial, point = self.book.ask()
                config = self.space.to_config(point)
                record = self._known.get(config.digest())
                if record is None and config.backend not in self.disabled and not self.space.violations(point):
                    return Suggestion(config, point, trial, "search")
                if record is not None:
                    self.book.tell(trial, record)
                else:
                    self.book.refuse(trial)
        fresh = self._fresh_point()
        return None if fresh is None else self._suggestion(fresh, "search")

    def _fresh_point(self) -> Point | None:
        """Return an unvisited neighbour of the best, else any unvisited point."""
        usable = [point for point in self._unvisited.values() if str(point["backend"]) not in self.disabled]
        if not usable and self.is_listed:
            return None
        best = min(
            (record for record in self._known.values() if record.value is not None and record.state == "measured"),
            key=lambda record: record.value or 0.0,
            default=None,
        )
        near = self.space.to_point(best.config) if best is not None else None
        if near is not None and self.sampler != "brute":
            around = [point for point in self.space.neighbours(near) if not self._is_done(point)]
            if around:
                return self._random.choice(around)
        if usable:
            return usable[0] if self.sampler == "brute" else self._random.choice(usable)
        fresh = [point for point in self.space.sample(self._random, 100) if not self._is_done(point)]
        return fresh[0] if fresh else None

    def _suggestion(self, point: Point, purpose: Literal["screen", "search"]) -> Suggestion:
        trial, asked = self.book.ask_for(point)
        return Suggestion(self.space.to_config(asked), asked, trial, purpose)
