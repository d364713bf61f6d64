"""Chooses the next configuration and opens its Optuna trial: screening, then a sampler, never a repeat.

``auto`` is our own search over the listed points; ``tpe`` asks Optuna; ``random`` and ``brute`` need no model. It
measures nothing.
"""

import random
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from optuna.trial import Trial

from tuner.records.config import Config
from tuner.space.resolved import ResolvedSpace
from tuner.space.walking import Point
from tuner.study.encoding import PointTable
from tuner.study.optuna_study import TrialBook
from tuner.study.searching import Searcher
from tuner.study.store import TrialRecord
from tuner.study.trying import tried_of

REASKS = 5
LIST_LIMIT = 20_000
POOL = 5_000
"""Points drawn where the space is too large to list; neighbours of the best join them."""
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
        build_s: Tells the expected seconds of what a configuration must have built, 0 if all is there; None: nothing
            is known.
        is_compiled: Says whether a configuration's artifact is compiled, the dearest kind of build.
        most_compiled: So many compiled artifacts are built at most, and only while they fit the time; None: any number.
    """

    def __init__(
        self,
        book: TrialBook,
        space: ResolvedSpace,
        *,
        seed: int,
        records: list[TrialRecord],
        sampler: str = "auto",
        build_s: Callable[[Config], float] | None = None,
        is_compiled: Callable[[Config], bool] = lambda _: False,
        most_compiled: int | None = None,
    ) -> None:
        self.book = book
        self.space = space
        self.sampler = sampler
        self.disabled: dict[str, str] = {}
        self.most_compiled: int | None = None
        self.is_listed = space.is_listed(LIST_LIMIT)
        self._build_s = build_s
        self._is_compiled = is_compiled
        self._compiled: set[int] = set()
        self._n_looked_at = 0
        self._random = random.Random(seed)  # noqa: S311 - orders must repeat, not be secret
        self._failures_in_a_row: dict[str, int] = {}
        self._told: set[str] = set()
        self._known: dict[int, TrialRecord] = {}
        self._first: deque[int] = deque()
        points = space.enumerate(LIST_LIMIT) if self.is_listed else space.sample(self._random, POOL)
        self.table = PointTable(space, points)
        seeds = self.table.extend(space.artifact_points())
        self.searcher = Searcher(self.table, seeds=seeds, seed=seed, may_grow=not self.is_listed)
        self._look_for_builds()
        for record in records:
            self.note(record)
        self.most_compiled = most_compiled  # of this run: builds of the earlier trials above do not count
        self._order_seeds()

    def begin_with(self, rows: Sequence[int], screened: Collection[int] = ()) -> None:
        """Suggest these rows, in order, before screening: what an older result makes likely.

        Args:
            rows: Of the table.
            screened: Families (`PointTable.cells`) that need no screening; they are left to the search.
        """
        self._first = deque(rows)
        kept = [row for row in self.searcher.seeds if int(self.table.cells[row]) not in screened]
        self.searcher.seeds = deque(kept)

    def note(self, record: TrialRecord) -> None:
        """Take a finished trial into account: it is not suggested again; three failures in a row disable a backend."""
        backend = record.config.backend
        if record.state == "failed":
            self._failures_in_a_row[backend] = self._failures_in_a_row.get(backend, 0) + 1
            if self._failures_in_a_row[backend] >= DISABLE_AFTER and record.failure is not None:
                self.disabled.setdefault(backend, record.failure.message)
        else:
            self._failures_in_a_row[backend] = 0
        point = self.space.to_point(record.config)
        if point is None:
            return  # a configuration of another space, or the baseline: no row to leave out
        trial_s = max(0.0, record.wall_s - record.build_s)
        asked, *others = self.table.extend([point, *self._same_in_force(record)])
        if self.most_compiled is not None and int(self.table.artifacts[asked]) in self._to_compile():
            self.most_compiled -= 1
        for row in (asked, *(other for other in others if other not in self._known)):
            self._known[row] = record
            self.searcher.note(tried_of(record, row), build_s=record.build_s, trial_s=trial_s)
        if record.build_s > 0 or record.state == "failed":
            self._look_for_builds()

    def _same_in_force(self, record: TrialRecord) -> list[Point]:
        """Return the point that asks for what was read back, where that is another one: it would measure the same."""
        effective = record.measurement.effective if record.measurement is not None else None
        if effective is None or record.state != "measured":
            return []
        session = {
            name: effective.settings.get(name, value) if name not in effective.unverified else value
            for name, value in record.config.session.items()
        }
        point = self.space.to_point(record.config.model_copy(update={"session": session}))
        return [] if point is None else [point]

    def expected(self, config: Config) -> tuple[float, float] | None:
        """Return what the model expects of a config, freed of one trial's luck: ln(time / anchor) and its sd."""
        point = self.space.to_point(config)
        posterior = self.searcher.portfolio.posterior()
        if point is None or posterior is None:
            return None
        row = self.table.extend([point])[0]
        return (float(posterior.mean[row]), float(posterior.sd[row])) if row < len(posterior.mean) else None

    def newly_disabled(self) -> list[tuple[str, str]]:
        """Return the backends disabled since the last call, with the last failure's text."""
        fresh = [(name, reason) for name, reason in self.disabled.items() if name not in self._told]
        self._told |= set(self.disabled)
        return fresh

    def known(self, config: Config) -> TrialRecord | None:
        """Return what is known of a configuration."""
        point = self.space.to_point(config)
        row = self.table.row_of(point) if point is not None else None
        return self._known.get(row) if row is not None else None

    def screening(self) -> list[Config]:
        """Return the screening configurations that are still to be run, in order."""
        rows = [row for row in self.searcher.seeds if row not in self._known and not self._is_disabled(row)]
        return [self._config(row) for row in rows]

    def skip_screening(self, config: Config) -> None:
        """Leave a screening configuration to the search (its build does not fit the time for screening)."""
        for row in [row for row in self.searcher.seeds if self._config(row) == config]:
            self.searcher.seeds.remove(row)

    def end_screening(self) -> None:
        """Screen no more artifacts than those still to be run: the time for it is spent."""
        self.searcher.is_screening = False

    def should_stop(self) -> str | None:
        """Return why nothing untried is worth a trial, None while something may be; only our own sampler knows."""
        return self.searcher.should_stop() if self.sampler == "auto" and not self._first else None

    def is_exhausted(self) -> bool:
        """Say whether no configuration is left to try, whatever it costs."""
        is_open = self.searcher.portfolio.trials.open_rows(with_slow=True)
        return not any(not self._is_disabled(int(row)) for row in is_open.nonzero()[0])

    def next(self, left_s: float | None = None) -> Suggestion | None:
        """Return the next configuration, None when there is none.

        Args:
            left_s: Seconds left; what is expected to take longer is not suggested (only by our own sampler).
        """
        if len(self.table) > self._n_looked_at:
            self._look_for_builds()
        barred = self._barred(left_s)
        while self._first:
            row = self._first.popleft()
            fits = left_s is None or float(self.searcher.costs.by_row()[row]) <= left_s
            if fits and self._may_try(row, barred):
                return self._suggestion(row, "screen")
        if self.sampler == "auto":
            return self._ours(left_s, barred)
        while self.searcher.seeds:
            row = self.searcher.seeds.popleft()
            if self._may_try(row, barred):
                return self._suggestion(row, "screen")
        if self.sampler == "tpe":
            asked = self._asked(barred)
            if asked is not None:
                return asked
        row_or_none = self._any_row(barred)
        return None if row_or_none is None else self._suggestion(row_or_none, "search")

    def _barred(self, left_s: float | None) -> set[int]:
        """Return the compiled artifacts that are one too many or do not fit the time; none where any number may be."""
        if self.most_compiled is None:
            return set()
        waiting, expected_s = self._to_compile(), self.searcher.costs.expected_s
        if self.most_compiled <= 0:
            return waiting
        return {artifact for artifact in waiting if left_s is not None and expected_s.get(artifact, 0.0) > left_s}

    def _may_try(self, row: int, barred: set[int]) -> bool:
        return row not in self._known and not self._is_disabled(row) and int(self.table.artifacts[row]) not in barred

    def _ours(self, left_s: float | None, barred: set[int]) -> Suggestion | None:
        names = list(self.space.backends)
        codes = [names.index(name) + 1 for name in self.disabled if name in names]
        found = self.searcher.next(codes, left_s, barred)
        if found is None and not self.is_listed:
            self.table.extend(self.space.sample(self._random, POOL))
            found = self.searcher.next(codes, left_s, barred)
        return None if found is None else self._suggestion(*found)

    def _asked(self, barred: set[int]) -> Suggestion | None:
        """Return what Optuna's sampler suggests, None if that was known or broke a rule every time."""
        for _ in range(REASKS):
            trial, point = self.book.ask()
            row = None if self.space.violations(point) else self.table.extend([point])[0]
            if row is not None and self._may_try(row, barred):
                return Suggestion(self._config(row), self.table.points[row], trial, "search")
            if row is not None and row in self._known:
                self.book.tell(trial, self._known[row])
            else:
                self.book.refuse(trial)
        return None

    def _any_row(self, barred: set[int]) -> int | None:
        """Return the first untried row for ``brute``, else a random one."""
        rows = [row for row in range(len(self.table)) if self._may_try(row, barred)]
        if not rows and not self.is_listed:
            fresh = self.table.extend(self.space.sample(self._random, POOL))
            rows = [row for row in fresh if self._may_try(row, barred)]
        if not rows:
            return None
        return rows[0] if self.sampler == "brute" else self._random.choice(rows)

    def _is_disabled(self, row: int) -> bool:
        return str(self.table.points[row]["backend"]) in self.disabled

    def _config(self, row: int) -> Config:
        return self.space.to_config(self.table.points[row])

    def _suggestion(self, row: int, purpose: Literal["screen", "search"]) -> Suggestion:
        trial, asked = self.book.ask_for(self.table.points[row])
        return Suggestion(self.space.to_config(asked), asked, trial, purpose)

    def _look_for_builds(self) -> None:
        """Ask what is built, and how long it will take to build what is not."""
        costs = self.searcher.costs
        seen: set[int] = set()
        for row, artifact in enumerate(self.table.artifacts.tolist()):
            if artifact in costs.built or artifact in seen:
                continue
            seen.add(artifact)
            config = self._config(row)
            expected_s = self._build_s(config) if self._build_s is not None else None
            if not config.artifact or expected_s == 0.0:
                costs.built.add(artifact)
            elif expected_s is not None:
                costs.expected_s[artifact] = expected_s
            if self._is_compiled(config):
                self._compiled.add(artifact)
        self._n_looked_at = len(self.table)

    def _to_compile(self) -> set[int]:
        """Return the compiled artifacts that are not built."""
        return self._compiled - self.searcher.costs.built

    def _order_seeds(self) -> None:
        """Screen what needs no build first, then what is built soonest."""
        cost_s = self.searcher.costs.by_row()
        ordered = sorted(self.searcher.seeds, key=lambda row: (cost_s[row], len(self._config(row).artifact)))
        self.searcher.seeds.clear()
        self.searcher.seeds.extend(ordered)
