"""Scores of predictions against labels, and what a candidate loses against the reference; it runs no model."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tuner.measure.quantiles import least_n
from tuner.measure.stats import mean_interval

GROUPS = 32
"""Parts of the rows that are left out in turn where a score is one number of all rows."""
SHUFFLES = 19
"""A score at or below the best of so many shuffled ones is no better than chance (one-sided .05)."""
TIE = 1e-6
"""Similarities closer than this are equal: copies of a text are neighbours in any order."""
LEAST_ROWS = 16

Score = Callable[[np.ndarray], float | np.ndarray]
"""Given row numbers (m,), one number of them all, or one a row (m,)."""


class Loss(NamedTuple):
    """What the candidate loses: reference - candidate, with one-sided 95% bounds on either side.

    Attributes:
        high: The loss is shown to be no larger; a limit at or above it holds (non-inferiority).
        low: The loss is shown to be no smaller.
    """

    reference: float
    candidate: float
    loss: float
    low: float
    high: float


def hits(logits: np.ndarray, labels: Sequence[int]) -> np.ndarray:
    """Return 1 for every row whose top class is its label, else 0; logits (n, classes)."""
    right: np.ndarray = (logits.argmax(axis=1) == np.asarray(labels)).astype(float)
    return right


def macro_f1(logits: np.ndarray, labels: Sequence[int]) -> float:
    """Return the mean F1 over the labels that occur; logits (n, classes)."""
    predicted, expected = logits.argmax(axis=1), np.asarray(labels)
    found = []
    for label in np.unique(expected):
        both = np.sum((predicted == label) & (expected == label))
        found.append(2 * both / (np.sum(predicted == label) + np.sum(expected == label)))
    return float(np.mean(found))


def cosines(vectors: np.ndarray) -> np.ndarray:
    """Return the cosine (n,) of pairs (n, 2, d)."""
    unit = _unit(vectors)
    found: np.ndarray = np.sum(unit[:, 0] * unit[:, 1], axis=1)
    return found


def spearman(values: np.ndarray, scores: Sequence[float]) -> float:
    """Return the rank correlation of values (n,) with `scores`; 0 where either is constant."""
    from scipy.stats import rankdata

    one, two = rankdata(np.round(values.astype(float), 9)), rankdata(scores)
    one, two = one - one.mean(), two - two.mean()
    size = math.sqrt(float(one @ one) * float(two @ two))
    return float(one @ two) / size if size > 0 else 0.0


def neighbour_recall(reference: np.ndarray, candidate: np.ndarray, k: int) -> np.ndarray:
    """Return for every row the share of the candidate's `k` nearest rows that are among the reference's, by cosine.

    A neighbour counts where the reference has it at least as near as its own k-th (Aumüller, Bernhardsson & Faithfull
    2020, distance-based recall), so copies and ties cost nothing.

    Args:
        reference: (n, d), n above k.
        candidate: (n, e).
        k: Neighbours, the row itself not counted.
    """
    near = _similarities(reference)
    kth = np.partition(near, -k, axis=1)[:, -k]
    chosen = np.argpartition(_similarities(candidate), -k, axis=1)[:, -k:]
    found: np.ndarray = (np.take_along_axis(near, chosen, axis=1) >= kth[:, None] - TIE).mean(axis=1)
    return found


def chance_recall(reference: np.ndarray, k: int) -> float:
    """Return the recall that neighbours drawn at random would have."""
    near = _similarities(reference)
    kth = np.partition(near, -k, axis=1)[:, -k]
    return float(((near >= kth[:, None] - TIE).sum(axis=1) / (len(near) - 1)).mean())


def paired_loss(reference: Score, candidate: Score, n: int) -> Loss:
    """Compare two scores of the same `n` rows.

    Scores of single rows give the interval of their mean difference; of a score that is one number, the rows are left
    out in 32 parts in turn (jackknife; Efron & Stein 1981) and the pseudo-values take their place.
    """
    every = np.arange(n)
    before, after = reference(every), candidate(every)
    loss = float(np.mean(before)) - float(np.mean(after))
    if np.ndim(before) and np.ndim(after):
        losses = np.asarray(before) - np.asarray(after)
    else:
        groups = min(GROUPS, n)
        parts = [every[every % groups != group] for group in range(groups)]
        without = np.array([float(np.mean(reference(part))) - float(np.mean(candidate(part))) for part in parts])
        losses = groups * loss - (groups - 1) * without
    interval = mean_interval(losses, 0.05)
    half = interval.high - interval.mean
    figures = (float(np.mean(before)), float(np.mean(after)), loss, loss - half, loss + half)
    return Loss(*(round(value, 9) for value in figures))


def is_chance(score: Callable[[np.ndarray], float], n: int, seed: int = 0) -> bool | None:
    """Say whether a score is no better than after shuffling; None where it never changes.

    Args:
        score: Given the row (n,) whose output stands in each row's place.
        n: Rows.
        seed: Of the shuffles.
    """
    random = np.random.default_rng(seed)
    own = score(np.arange(n))
    shuffled = [score(random.permutation(n)) for _ in range(SHUFFLES)]
    if all(math.isclose(value, own, abs_tol=1e-12) for value in shuffled):
        return None
    return own <= max(shuffled)


def rows_for_claim(max_loss: float, scale: float = 1.0) -> int | None:
    """Return the rows that show a loss of at most `max_loss`: fewer may all be spared by a flaw that costs as much.

    A flaw in a share p of the traffic costs up to p times `scale`; n rows miss it with probability (1 - p)ⁿ, 5% here.
    None where no number is enough.
    """
    share = max_loss / scale
    return None if share <= 0 else 1 if share >= 1 else least_n(1 - share)


def _unit(vectors: np.ndarray) -> np.ndarray:
    values = vectors.astype(float)
    unit: np.ndarray = values / np.maximum(np.linalg.norm(values, axis=-1, keepdims=True), 1e-12)
    return unit


def _similarities(vectors: np.ndarray) -> np.ndarray:
    """Return cosines (n, n), a row's own set below all others."""
    unit = _unit(vectors)
    found: np.ndarray = unit @ unit.T
    np.fill_diagonal(found, -np.inf)
    return found
