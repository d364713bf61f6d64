"""Extremely randomised trees over coded points (Geurts, Ernst & Wehenkel 2006): a model that assumes no smoothness."""

from dataclasses import dataclass

import numpy as np

from tuner.study.encoding import PointTable
from tuner.study.surrogate import Posterior

__all__ = ["Forest"]

N_TREES = 40
LEAST_LEAF = 2
LEAST_SD = 0.01


@dataclass
class _Tree:
    """Nodes as lists: the column asked, which of its codes go left, both children, mean and variance of the leaf."""

    column: list[int]
    goes_left: list[np.ndarray]
    children: list[list[int]]
    mean: list[float]
    variance: list[float]


class Forest:
    """Trees grown on trials of one table.

    Args:
        table: Rows and codes.
        rng: Of the splits.
    """

    def __init__(self, table: PointTable, rng: np.random.Generator) -> None:
        self.table = table
        self.rng = rng
        self._width = max(column.n_codes for column in table.columns)
        self._trees: list[_Tree] = []

    def fit(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Grow the trees anew."""
        codes = self.table.codes[rows]
        self._trees = []
        for _ in range(N_TREES):
            tree = _Tree([], [], [], [], [])
            self._grow(tree, codes, values)
            self._trees.append(tree)

    def predict(self, rows: np.ndarray) -> Posterior:
        """Return mean and standard deviation at rows: the spread of the trees and the spread inside their leaves."""
        codes = self.table.codes[rows].astype(np.int64)
        means = np.empty((len(self._trees), len(rows)))
        variances = np.empty_like(means)
        for number, tree in enumerate(self._trees):
            column = np.array(tree.column)
            goes_left = np.array(tree.goes_left)
            children = np.array(tree.children)
            node = np.zeros(len(rows), dtype=np.int64)
            active = np.flatnonzero(column[node] >= 0)
            while len(active):
                here = node[active]
                is_left = goes_left[here, codes[active, column[here]]]
                node[active] = children[here, is_left.astype(np.int64)]
                active = active[column[node[active]] >= 0]
            means[number] = np.array(tree.mean)[node]
            variances[number] = np.array(tree.variance)[node]
        spread = means.var(axis=0) + variances.mean(axis=0)
        return Posterior(means.mean(axis=0), np.sqrt(spread + LEAST_SD**2))

    def _grow(self, tree: _Tree, codes: np.ndarray, values: np.ndarray) -> int:
        """Add the node of some trials and all below it; return its number."""
        node = len(tree.column)
        tree.column.append(-1)
        tree.goes_left.append(np.zeros(self._width, dtype=bool))
        tree.children.append([node, node])
        tree.mean.append(float(values.mean()))
        tree.variance.append(float(values.var()))
        split = self._split(codes, values) if len(values) > LEAST_LEAF else None
        if split is None:
            return node
        column, goes_left = split
        is_left = goes_left[codes[:, column]]
        tree.column[node], tree.goes_left[node] = column, goes_left
        right = self._grow(tree, codes[~is_left], values[~is_left])
        left = self._grow(tree, codes[is_left], values[is_left])
        tree.children[node] = [right, left]
        return node

    def _split(self, codes: np.ndarray, values: np.ndarray) -> tuple[int, np.ndarray] | None:
        """Return the best of one random split of every column that differs, None if none does."""
        best: tuple[float, int, np.ndarray] | None = None
        for column in np.flatnonzero(np.ptp(codes, axis=0)):
            seen = codes[:, column]
            goes_left = self._random_side(int(column), seen)
            is_left = goes_left[seen]
            n_left = int(is_left.sum())
            if n_left in (0, len(values)):
                continue
            left, right = values[is_left], values[~is_left]
            gain = n_left * float(left.mean()) ** 2 + (len(values) - n_left) * float(right.mean()) ** 2
            if best is None or gain > best[0]:
                best = gain, int(column), goes_left
        return None if best is None else (best[1], best[2])

    def _random_side(self, column: int, seen: np.ndarray) -> np.ndarray:
        """Return which codes go left: those below a random place, or a random set of categories."""
        goes_left = np.zeros(self._width, dtype=bool)
        n_codes = self.table.columns[column].n_codes
        if self.table.columns[column].places is not None:
            goes_left[: int(self.rng.integers(int(seen.min()) + 1, int(seen.max()) + 1))] = True
            return goes_left
        present = np.unique(seen)
        chosen = self.rng.permutation(present)[: int(self.rng.integers(1, len(present)))]
        goes_left[:n_codes] = self.rng.random(n_codes) < 0.5  # noqa: PLR2004 - unseen codes go either way
        goes_left[present] = False
        goes_left[chosen] = True
        return goes_left
