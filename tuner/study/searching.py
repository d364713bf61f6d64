"""The order of a search over rows: screening of artifacts, then the portfolio, until nothing is likely to gain.

It knows no configuration and no clock: costs and the end of screening are told.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from tuner.study.encoding import PointTable
from tuner.study.portfolio import ROTATION, Arm, Portfolio
from tuner.study.stopping import StopRule
from tuner.study.trying import Tried

__all__ = ["Costs", "Searcher"]

BUILD_S = 20.0
"""Assumed for an artifact of which nothing is expected, while no build has been seen."""
TRIAL_S = 5.0
LEAST_TRIAL_S = 0.5
WORTHWHILE = 0.5
"""Share of the best gain a second that an untried artifact must promise to be screened before the search."""


class Costs:
    """Expected seconds of a trial by row: building what is not built, and a trial of its backend.

    Attributes:
        built: Artifacts that are there.
        expected_s: By artifact, the seconds of its build.
    """

    def __init__(self, table: PointTable) -> None:
        self.table = table
        self.built: set[int] = set()
        self.expected_s: dict[int, float] = {}
        self._build_s: list[float] = []
        self._trial_s: dict[int, list[float]] = {}

    def note(self, row: int, *, build_s: float, trial_s: float) -> None:
        """Keep what a trial cost."""
        self.built.add(int(self.table.artifacts[row]))
        if build_s > 0:
            self._build_s.append(build_s)
        if trial_s > 0:
            self._trial_s.setdefault(int(self.table.codes[row, 0]), []).append(trial_s)

    def by_row(self) -> np.ndarray:
        """Return the expected seconds."""
        table = self.table
        mean_s = float(np.mean(self._build_s)) if self._build_s else BUILD_S
        groups, places = np.unique(table.artifacts, return_inverse=True)
        build_s = [0.0 if group in self.built else self.expected_s.get(group, mean_s) for group in groups.tolist()]
        seen = [seconds for group in self._trial_s.values() for seconds in group]
        found: np.ndarray = np.full(len(table), float(np.median(seen)) if seen else TRIAL_S)
        for backend, group in self._trial_s.items():
            found[table.codes[:, 0] == backend] = float(np.median(group[-8:]))
        np.maximum(found, LEAST_TRIAL_S, out=found)
        found += np.array(build_s)[places.reshape(-1)]
        return found


class Searcher:
    """Screening, then search, over the rows of one table.

    Args:
        table: The space.
        seeds: Rows to screen first, in order.
        seed: Of all choices.
        rotation: Of the portfolio.
        may_grow: The table is a sample: neighbours of the best join it.
    """

    def __init__(
        self,
        table: PointTable,
        *,
        seeds: Sequence[int],
        seed: int,
        rotation: Sequence[Arm] = ROTATION,
        may_grow: bool = False,
    ) -> None:
        self.table = table
        self.portfolio = Portfolio(table, seed=seed, rotation=rotation)
        self.costs = Costs(table)
        self.seeds: deque[int] = deque(seeds)
        self.is_screening = True
        self.may_grow = may_grow
        self._rule = StopRule()

    def note(self, tried: Tried, *, build_s: float = 0.0, trial_s: float = 0.0) -> None:
        """Take a trial into account."""
        self.portfolio.note(tried)
        self.costs.note(tried.row, build_s=build_s, trial_s=trial_s)

    def next(
        self, disabled: Iterable[int] = (), left_s: float | None = None, barred: Iterable[int] = ()
    ) -> tuple[int, Literal["screen", "search"]] | None:
        """Return the next row and why it is tried, None if no row is left.

        Args:
            disabled: Codes of backends that are not to be tried.
            left_s: Rows that are expected to take longer are left out.
            barred: Artifacts that are not to be tried.
        """
        cost_s = self.costs.by_row()
        allowed = ~np.isin(self.table.codes[:, 0], list(disabled)) & ~np.isin(self.table.artifacts, list(barred))
        if left_s is not None:
            allowed &= cost_s <= left_s
        is_open = self.portfolio.trials.open_rows() & allowed
        while self.seeds:
            row = self.seeds.popleft()
            if is_open[row]:
                return row, "screen"
        if self.is_screening:
            untried = self._worth_screening(is_open, cost_s)
            if untried is not None:
                return untried, "screen"
            self.is_screening = False
        chosen = self.portfolio.choose(cost_s, allowed=allowed, neighbours=self._neighbours)
        return None if chosen is None else (chosen, "search")

    def should_stop(self) -> str | None:
        """Return why nothing untried is worth a trial, None while something may be."""
        return None if self.seeds else self._rule.reason(self.portfolio)

    def _worth_screening(self, is_open: np.ndarray, cost_s: np.ndarray) -> int | None:
        """Return the row of an untried artifact with the most expected gain a second, if that comes near the best."""
        tried = self.table.artifacts[list(self.portfolio.trials.tried)]
        is_untried = is_open & ~np.isin(self.table.artifacts, tried)
        if not is_untried.any() or self.portfolio.posterior() is None:
            return None
        rows = np.flatnonzero(is_open)
        score = self.portfolio.gain(rows) * self.portfolio.trials.feasibility()[rows] / cost_s[rows]
        untried = is_untried[rows]
        if score[untried].max() < WORTHWHILE * score.max():
            return None
        candidates = np.flatnonzero(untried)
        return int(rows[candidates[np.argmax(score[candidates])]])

    def _neighbours(self, row: int) -> list[int]:
        """Return the rows in the table that differ in one value, or in what that makes active or not."""
        near = self.table.space.neighbours(self.table.points[row])
        if self.may_grow:
            return self.table.extend(near)
        return [found for found in map(self.table.row_of, near) if found is not None]
