"""Extremely randomised trees over coded points (Geurts, Ernst & Wehenkel 2006): a model that assumes no smoothness.

All trees grow together, level by level, and the rows asked about fall through them as they grow.
"""

from dataclasses import dataclass

import numpy as np

from tuner.study.encoding import PointTable
from tuner.study.surrogate import Posterior

__all__ = ["forest_posterior"]

N_TREES = 40
N_LEVELS = 16
LEAST_LEAF = 2
LEAST_SD = 0.01


@dataclass
class _Flow:
    """Samples or questions on their way: codes, node, and what goes with them."""

    codes: np.ndarray
    node: np.ndarray
    what: np.ndarray

    def kept(self, mask: np.ndarray) -> "_Flow":
        return _Flow(self.codes[mask], self.node[mask], self.what[mask])


@dataclass(frozen=True)
class _Splits:
    """One random split of every column, by node: a threshold for numbers, a random side for each category."""

    thresholds: np.ndarray
    sides: np.ndarray
    is_number: np.ndarray
    offsets: np.ndarray

    def goes_left(self, codes: np.ndarray, node: np.ndarray, column: np.ndarray) -> np.ndarray:
        below = codes < self.thresholds[node, column]
        found: np.ndarray = np.where(self.is_number[column], below, self.sides[node, self.offsets[column] + codes])
        return found


def forest_posterior(
    table: PointTable, rows: np.ndarray, values: np.ndarray, asked: np.ndarray, rng: np.random.Generator
) -> Posterior:
    """Return mean and standard deviation at rows `asked`: the spread of the trees and the spread inside their leaves.

    Args:
        table: Rows and codes.
        rows: Rows that were tried.
        values: Their ln ratios.
        asked: Rows to predict.
        rng: Of the splits.
    """
    is_number = np.array([column.places is not None for column in table.columns])
    offsets = np.array(table.offsets)
    samples = _Flow(
        np.tile(table.codes[rows], (N_TREES, 1)), np.repeat(np.arange(N_TREES), len(rows)), np.tile(values, N_TREES)
    )
    places = np.arange(N_TREES * len(asked))
    questions = _Flow(np.tile(table.codes[asked], (N_TREES, 1)), np.repeat(np.arange(N_TREES), len(asked)), places)
    means, variances = np.zeros(len(places)), np.zeros(len(places))
    for level in range(N_LEVELS):
        order = np.argsort(samples.node, kind="stable")
        samples = _Flow(samples.codes[order], samples.node[order], samples.what[order])
        starts = np.flatnonzero(np.diff(samples.node, prepend=-1))
        counts = np.diff(np.append(starts, len(samples.node)))
        mean = np.add.reduceat(samples.what, starts) / counts
        square = np.add.reduceat(samples.what**2, starts) / counts
        low, high = np.minimum.reduceat(samples.codes, starts), np.maximum.reduceat(samples.codes, starts)
        is_leaf = (counts <= LEAST_LEAF) | (low == high).all(axis=1) | (level == N_LEVELS - 1)
        ends = is_leaf[questions.node]
        means[questions.what[ends]] = mean[questions.node[ends]]
        variances[questions.what[ends]] = np.maximum(square - mean**2, 0.0)[questions.node[ends]]
        samples, questions = samples.kept(~is_leaf[samples.node]), questions.kept(~ends)
        if not len(samples.node):
            break
        thresholds = low + 1 + np.floor(rng.random(low.shape) * (high - low))
        splits = _Splits(thresholds, rng.random((len(counts), offsets[-1])) < 0.5, is_number, offsets)  # noqa: PLR2004
        _descend(samples, questions, splits)
    shape = (N_TREES, len(asked))
    spread = means.reshape(shape).var(axis=0) + variances.reshape(shape).mean(axis=0)
    return Posterior(means.reshape(shape).mean(axis=0), np.sqrt(spread + LEAST_SD**2))


def _descend(samples: _Flow, questions: _Flow, splits: _Splits) -> None:
    """Move all down one level, through the split that explains most; a node without a real split stays whole."""
    columns = np.arange(samples.codes.shape[1])
    is_left = splits.goes_left(samples.codes, samples.node[:, None], columns[None, :])
    present, compact = np.unique(samples.node, return_inverse=True)
    starts = np.flatnonzero(np.diff(compact, prepend=-1))
    n_all = np.diff(np.append(starts, len(compact)))[:, None]
    n_left = np.add.reduceat(is_left.astype(np.int64), starts)
    left = np.add.reduceat(is_left * samples.what[:, None], starts)
    right = np.add.reduceat(samples.what, starts)[:, None] - left
    is_real = (n_left > 0) & (n_left < n_all)
    gain = np.where(is_real, left**2 / np.maximum(n_left, 1) + right**2 / np.maximum(n_all - n_left, 1), -1.0)
    best = np.zeros(int(splits.thresholds.shape[0]), dtype=np.int64)
    has_split = np.zeros(len(best), dtype=bool)
    best[present], has_split[present] = gain.argmax(axis=1), is_real.any(axis=1)
    children = []
    for flow in (samples, questions):
        column = best[flow.node]
        codes = flow.codes[np.arange(len(column)), column]
        goes_left = splits.goes_left(codes, flow.node, column) & has_split[flow.node]
        children.append(2 * flow.node + goes_left)
    fresh = np.unique(children[0])
    samples.node, questions.node = (np.searchsorted(fresh, child) for child in children)
