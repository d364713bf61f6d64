"""Turns token vectors into one vector a row, in numpy; which way is the model's own (records.model.Pooling)."""

import numpy as np

from tuner.records.model import Pooling


def pool(tokens: np.ndarray, mask: np.ndarray | None, pooling: Pooling) -> np.ndarray:
    """Pool and, if the model says so, normalise.

    Args:
        tokens: (batch, length, d), any float dtype; (batch, d) is taken as already pooled.
        mask: (batch, length), 1 for tokens that count; None: all of them.
        pooling: The model's way.

    Returns:
        (batch, d) float32; a row without a token is zero.
    """
    values: np.ndarray = tokens.astype(np.float32, copy=False)
    if values.ndim == 3:  # noqa: PLR2004 - batch, length, d
        weights = np.ones(values.shape[:2], np.float32) if mask is None else mask.astype(np.float32)
        values = _reduce(values, weights, pooling.mode)
    if not pooling.normalize:
        return values
    norms = np.sqrt(np.einsum("ij,ij->i", values, values, dtype=np.float64))[:, None]
    unit: np.ndarray = (values / np.maximum(norms, 1e-12)).astype(np.float32)
    return unit


def _reduce(values: np.ndarray, weights: np.ndarray, mode: str) -> np.ndarray:
    reduced: np.ndarray
    if mode == "cls":
        reduced = values[np.arange(len(values)), np.argmax(weights > 0, axis=1)]
    elif mode == "last":
        last = weights.shape[1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=1)
        reduced = values[np.arange(len(values)), last]
    elif mode == "max":
        reduced = np.where(weights[:, :, None] > 0, values, np.float32(-1e9)).max(axis=1)
    else:
        reduced = np.einsum("blD,bl->bD", values, weights) / np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    return reduced
