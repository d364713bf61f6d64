"""What has been tried: rows, values, noise, and what failures and misses rule out; it chooses nothing."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tuner.study.encoding import BACKEND, PointTable
from tuner.study.store import TrialRecord

__all__ = ["Trials", "Tried", "noise_of", "tried_of"]

Label = Literal["feasible", "infeasible", "unfaithful", "failed"]

PROCESS_SD = 0.01
"""Between-process standard deviation of a quiet host (method.md 1.1); a trial is one process."""
PAIR_SD = 0.02
PRUNED_SD = 0.08
PAIRS = 2
SHARED_PAIRS = 2
MEDIAN_OF_SQUARE = 0.455
"""Median of a squared standard normal, which is what one pair's estimate of a variance of 1 is distributed like."""
SHARED_FAILURES = 2
DROP_RATIO = 2.5
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


@dataclass(frozen=True)
class Tried:
    """One trial.

    Attributes:
        value: ln(candidate / anchor), None if it failed.
        sd: Standard deviation of `value` where its block pairs do not tell it.
        label: ``unfaithful`` misses a fidelity limit, ``infeasible`` another one.
        cause: Of a failure: kind and message without numbers.
        is_whole: False for an estimate of a trial that was stopped early.
        pair_sd: Standard deviation of its block pairs.
    """

    row: int
    value: float | None
    sd: float = PROCESS_SD
    label: Label = "feasible"
    cause: str = ""
    is_whole: bool = True
    pair_sd: float | None = None


def tried_of(record: TrialRecord, row: int) -> Tried:
    """Return a record as the search sees it; a measured one without a finite value counts as failed."""
    if record.state == "failed" or record.value is None or not math.isfinite(record.value):
        failure = record.failure
        cause = f"{failure.kind} {_NUMBER.sub('#', failure.message)}" if failure is not None else "no value"
        return Tried(row, None, label="failed", cause=cause)
    broken = [key for key, value in record.violations.items() if value > 0]
    label: Label = "infeasible" if broken else "feasible"
    if any(key.startswith("fidelity.") for key in broken):
        label = "unfaithful"
    if record.state == "pruned":
        return Tried(row, record.value, PRUNED_SD, label, is_whole=False)
    return Tried(row, record.value, math.sqrt(PROCESS_SD**2 + PAIR_SD**2 / PAIRS), label, pair_sd=record.pair_sd)


def noise_of(tried: Sequence[Tried]) -> np.ndarray:
    """Return the variance of every value.

    Two block pairs say little about their own spread: it is drawn towards that of the usual trial, which counts as
    much as `SHARED_PAIRS` of them. Otherwise the pair that agrees by chance would pass for the surest of all. The usual
    spread is that of the median, so that one wild trial does not make all others doubtful.
    """
    own = np.array([np.nan if item.pair_sd is None else max(item.pair_sd, PROCESS_SD / 2) for item in tried]) ** 2
    given = np.array([item.sd for item in tried]) ** 2
    if np.isnan(own).all():
        return given
    drawn = (own + SHARED_PAIRS * np.nanmedian(own) / MEDIAN_OF_SQUARE) / (1 + SHARED_PAIRS)
    found: np.ndarray = np.where(np.isnan(own), given, PROCESS_SD**2 + drawn / PAIRS)
    return found


@dataclass
class Trials:
    """All trials on one table."""

    table: PointTable
    tried: dict[int, Tried] = field(default_factory=dict)

    def note(self, tried: Tried) -> None:
        """Keep a trial; a second one of a row replaces the first."""
        self.tried[tried.row] = tried

    def known(self) -> list[Tried]:
        """Return the trials that have a value."""
        return [item for item in self.tried.values() if item.value is not None]

    def best_value(self) -> float | None:
        """Return the lowest value of whole feasible trials."""
        found = [i.value for i in self.known() if i.label == "feasible" and i.is_whole and i.value is not None]
        return min(found, default=None)

    def open_rows(self, *, with_slow: bool = False) -> np.ndarray:
        """Return a mask of the rows worth trying: untried, and not ruled out by what was tried.

        Ruled out are outputs that missed a fidelity limit (it holds for all rows of one numerics key), what shares the
        cause of two failures and, unless `with_slow`, artifacts that were more than 2.5 times slower than the best.
        """
        table = self.table
        is_open = np.ones(len(table), dtype=bool)
        is_open[list(self.tried)] = False
        unfaithful = [item.row for item in self.tried.values() if item.label == "unfaithful"]
        is_open &= ~np.isin(table.numerics, table.numerics[unfaithful])
        if not with_slow:
            is_open &= ~np.isin(table.cells, self._slow_cells())
        for pattern in self.failing_patterns():
            is_open &= ~pattern
        return is_open

    def failing_patterns(self) -> Iterable[np.ndarray]:
        """Yield masks of the rows that match what two failures have in common.

        Two failures of one artifact rule it out if it never worked. Two failures with one message rule out the
        rows with all those values that they share and that no trial with a value has.
        """
        failed = [item for item in self.tried.values() if item.label == "failed"]
        worked = np.array([item.row for item in self.known()], dtype=np.int64)
        codes, artifacts = self.table.codes, self.table.artifacts
        by_artifact: dict[int, int] = {}
        by_cause: dict[str, list[int]] = {}
        for item in failed:
            by_artifact[int(artifacts[item.row])] = by_artifact.get(int(artifacts[item.row]), 0) + 1
            by_cause.setdefault(item.cause, []).append(item.row)
        for artifact, count in by_artifact.items():
            if count >= SHARED_FAILURES and artifact not in artifacts[worked]:
                yield artifacts == artifact
        backend = [column.name for column in self.table.columns].index(BACKEND)
        for rows in by_cause.values():
            if len(rows) < SHARED_FAILURES:
                continue
            mine = worked[codes[worked, backend] == codes[rows[0], backend]]
            shared = [
                place
                for place in range(codes.shape[1])
                if len(set(codes[rows, place])) == 1
                and codes[rows[0], place]
                and codes[rows[0], place] not in codes[mine, place]
                and place != backend
            ]
            if shared:
                yield (codes[:, [backend, *shared]] == codes[rows[0], [backend, *shared]]).all(axis=1)

    def feasibility(self) -> np.ndarray:
        """Return the probability by row that a trial will succeed and keep the constraints.

        It is the lowest Laplace-smoothed rate among the row's values; whether outputs are faithful is learned from the
        values that can change outputs only, and is certain where the numerics key is known.
        """
        table = self.table
        found = np.ones(len(table))
        items = list(self.tried.values())
        bad = [item for item in items if item.label != "feasible"]
        if not bad:
            return found
        rows = np.array([item.row for item in items])
        is_unfaithful = np.array([item.label == "unfaithful" for item in items])
        is_bad = np.array([item.label in ("failed", "infeasible") for item in items])
        is_known = np.isin(table.numerics, table.numerics[rows[~is_bad & ~is_unfaithful]])
        faithful: np.ndarray = np.where(is_known, 1.0, self._lowest_rate(rows, is_unfaithful, table.numerics_columns))
        faithful *= self._lowest_rate(rows, is_bad, np.arange(table.codes.shape[1]))
        return faithful

    def _lowest_rate(self, rows: np.ndarray, is_bad: np.ndarray, places: np.ndarray) -> np.ndarray:
        lowest = np.ones(len(self.table))
        if not is_bad.any():
            return lowest
        overall = (np.count_nonzero(~is_bad) + 1) / (len(rows) + 2)
        for place in places:
            codes = self.table.codes[:, place]
            n_codes = self.table.columns[place].n_codes
            good = np.bincount(codes[rows[~is_bad]], minlength=n_codes)
            total = np.bincount(codes[rows], minlength=n_codes)
            lowest = np.minimum(lowest, ((good + overall) / (total + 1))[codes])
        return lowest

    def _slow_cells(self) -> list[int]:
        """Return the artifacts (with their precision) whose best is more than 2.5 times slower than the best."""
        best = self.best_value()
        if best is None:
            return []
        fastest: dict[int, float] = {}
        for item in self.known():
            cell = int(self.table.cells[item.row])
            assert item.value is not None
            fastest[cell] = min(item.value, fastest.get(cell, math.inf))
        return [cell for cell, value in fastest.items() if value > best + math.log(DROP_RATIO)]
