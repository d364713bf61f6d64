"""Chooses the next row of a table: a Gaussian process, trees, neighbours of the best and new values, by turns.

Costs count. It knows rows only: no configuration, no Optuna, no clock. The same seed and trials choose the same rows.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from tuner.study.encoding import PointTable
from tuner.study.forest import forest_posterior
from tuner.study.surrogate import Gaussian, Posterior
from tuner.study.trying import Trials, Tried, noise_of

__all__ = ["ROTATION", "Arm", "Portfolio", "expected_improvement"]

Arm = Literal["gaussian", "forest", "neighbour", "novel"]
ROTATION: tuple[Arm, ...] = ("gaussian", "gaussian", "forest", "novel", "gaussian", "neighbour")
OPTIMISM = 3.0
"""Standard deviations below the mean at which a value that its engine has never had is hoped to be."""
WORTH_A_LOOK = 0.1
"""Neighbours are tried while the best of them promises this share of what any row promises."""
POOL = 1500
"""Rows that the trees look at: the most promising of the process, and random ones."""


class Portfolio:
    """Models on one table and the choice by them.

    Args:
        table: The space.
        seed: Of all choices.
        rotation: Which arm chooses, in turn.
    """

    def __init__(self, table: PointTable, *, seed: int, rotation: Sequence[Arm] = ROTATION) -> None:
        self.table = table
        self.trials = Trials(table)
        self.gaussian = Gaussian(table)
        self.rng = np.random.default_rng(seed)
        self.rotation = tuple(rotation)
        self.turn = 0
        self._posterior: Posterior | None = None

    def note(self, tried: Tried) -> None:
        """Take a trial into account."""
        self.trials.note(tried)
        self._posterior = None

    def posterior(self) -> Posterior | None:
        """Return the process's posterior at all rows, None before any value."""
        known = self.trials.known()
        if self._posterior is None and known:
            rows, values, noise = _arrays(known)
            self.gaussian.fit(rows, values, noise)
            self._posterior = self.gaussian.predict()
        return self._posterior

    def incumbent(self) -> tuple[int, float] | None:
        """Return the feasible row with the lowest posterior mean and that mean: free of the luck of one trial."""
        posterior = self.posterior()
        rows = [item.row for item in self.trials.known() if item.label == "feasible" and item.is_whole]
        if posterior is None or not rows:
            return None
        best = min(rows, key=lambda row: float(posterior.mean[row]))
        return best, float(posterior.mean[best])

    def choose(
        self,
        cost_s: np.ndarray,
        *,
        allowed: np.ndarray | None = None,
        neighbours: Callable[[int], Sequence[int]] | None = None,
    ) -> int | None:
        """Return the next row, None if none is left.

        Args:
            cost_s: Expected seconds of a trial by row.
            allowed: Mask of rows that may be chosen.
            neighbours: Rows that differ in one value from a row.
        """
        allowed = np.ones(len(self.table), dtype=bool) if allowed is None else allowed
        is_open = self.trials.open_rows() & allowed
        if not is_open.any():
            is_open = self.trials.open_rows(with_slow=True) & allowed
        rows = np.flatnonzero(is_open)
        if not len(rows):
            return None
        arm = self.rotation[self.turn % len(self.rotation)]
        self.turn += 1
        posterior, best = self.posterior(), self.incumbent()
        if posterior is None:
            return int(self.rng.choice(rows))
        gain = self.gain(rows)
        if arm == "neighbour" and best is not None and neighbours is not None:
            is_near = np.isin(rows, neighbours(best[0]))  # rows that joined the table just now wait for the next turn
            if gain[is_near].max(initial=0.0) > WORTH_A_LOOK * gain.max():
                rows, gain = rows[is_near], gain[is_near]
        if arm == "forest":
            order = np.argsort(-gain, kind="stable")[: POOL // 2]
            extra = self.rng.choice(len(rows), size=min(len(rows), POOL // 2), replace=False)
            rows = rows[np.unique(np.concatenate([order, extra]))]
            gain = self._forest_gain(rows)
        if arm == "novel":
            hope = self._hope(rows)
            gain = hope if hope.any() else gain
        score = gain * self.trials.feasibility()[rows] / cost_s[rows]
        return int(rows[np.argmax(score)])

    def _hope(self, rows: np.ndarray) -> np.ndarray:
        """Return how far each row would be below the best if it were as good as it may be; 0 but for rows with news.

        A row has news if exactly one of its values was never tried with its backend: improbable at first sight, but
        nothing else tells whether, say, an allocator helps the engine that is second now.
        """
        codes, posterior = self.table.codes, self.posterior()
        assert posterior is not None
        tried = list(self.trials.tried)
        paired = codes[:, :1] * (1 + codes.max()) + codes
        news = [~np.isin(paired[rows, place], paired[tried, place]) for place in range(codes.shape[1])]
        hope = self._threshold() - (posterior.mean[rows] - OPTIMISM * posterior.sd[rows])
        found: np.ndarray = np.where(np.sum(news, axis=0) == 1, np.maximum(hope, 0.0), 0.0)
        return found

    def gain(self, rows: np.ndarray) -> np.ndarray:
        """Return the expected improvement (log-ratio) at rows by the process."""
        posterior = self.posterior()
        assert posterior is not None
        return expected_improvement(Posterior(posterior.mean[rows], posterior.sd[rows]), self._threshold())

    def _threshold(self) -> float:
        best = self.incumbent()
        if best is not None:
            return best[1]
        posterior = self.posterior()
        assert posterior is not None
        return float(np.max(posterior.mean[[item.row for item in self.trials.known()]]))

    def _forest_gain(self, rows: np.ndarray) -> np.ndarray:
        known, values, _ = _arrays(self.trials.known())
        good = np.array([item.row for item in self.trials.known() if item.label == "feasible"] or known, dtype=np.int64)
        found = forest_posterior(self.table, known, values, np.concatenate([good, rows]), self.rng)
        threshold = float(np.min(found.mean[: len(good)]))
        return expected_improvement(Posterior(found.mean[len(good) :], found.sd[len(good) :]), threshold)


def expected_improvement(posterior: Posterior, threshold: float) -> np.ndarray:
    """Return E[max(0, threshold - value)] (Jones, Schonlau & Welch 1998, eq. 15)."""
    from scipy.special import ndtr

    gap = threshold - posterior.mean
    z = gap / posterior.sd
    density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    found: np.ndarray = np.maximum(gap * ndtr(z) + posterior.sd * density, 1e-300)
    return found


def _arrays(known: list[Tried]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, values and variances."""
    rows = np.array([item.row for item in known], dtype=np.int64)
    values = np.array([item.value for item in known], dtype=float)
    return rows, values, noise_of(known)
