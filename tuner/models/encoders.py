"""Opens an encoder that CTranslate2 converted and calls it with arrays; it imports no other library."""

from pathlib import Path
from typing import Any

import numpy as np

from tuner.errors import Unsupported
from tuner.models.wording import one_line
from tuner.records.encoder import Encoder

Batch = dict[str, np.ndarray]
IDS, MASK, TYPES = "input_ids", "attention_mask", "token_type_ids"


def open_encoder(directory: Path, **options: object) -> Any:  # noqa: ANN401 - the library is untyped
    """Return the library's encoder.

    Args:
        directory: With ``model.bin``.
        options: Of ``ctranslate2.Encoder``.

    Raises:
        Unsupported: It cannot be opened so.
    """
    import ctranslate2

    try:
        return ctranslate2.Encoder(str(directory), device="cpu", **options)
    except (RuntimeError, ValueError) as error:
        raise Unsupported(
            f"CTranslate2 {ctranslate2.__version__} refuses {directory.name}: {one_line(error)}"
        ) from error


def answer(engine: Any, encoder: Encoder, batch: Batch) -> Batch:  # noqa: ANN401 - the library is untyped
    """Run one batch; what stands behind the mask of a row is not what PyTorch has there.

    Args:
        engine: From `open_encoder`.
        encoder: Its description.
        batch: ``input_ids`` (rows, length), its mask of ones followed by zeros, and token types.

    Raises:
        Unsupported: The mask has another form, or an id lies outside its table (the library would read on behind it).
    """
    from ctranslate2 import StorageView

    ids = batch[IDS]
    if ids.shape[1] > encoder.longest:
        raise Unsupported(f"rows of {ids.shape[1]} tokens, the model takes at most {encoder.longest}")
    _check_range(ids, encoder.n_tokens, IDS)
    types = batch.get(TYPES) if encoder.n_types > 1 else None
    if types is not None:
        _check_range(types, encoder.n_types, TYPES)
    named = types.tolist() if types is not None and types.any() else None
    narrow = np.ascontiguousarray(ids, np.int32)
    lengths = lengths_of(batch.get(MASK), ids.shape)
    made = engine.forward_batch(StorageView.from_array(narrow), StorageView.from_array(lengths), named)
    return {encoder.output: np.array(made.last_hidden_state)}


def lengths_of(mask: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    """Return the tokens of each row, (rows,) int32.

    Raises:
        Unsupported: A row of the mask is not ones followed by zeros.
    """
    if mask is None:
        return np.full(shape[0], shape[1], np.int32)
    if (mask[:, 1:] > mask[:, :-1]).any():
        raise Unsupported("CTranslate2 takes rows padded at their end alone: pad on the right")
    lengths: np.ndarray = mask.sum(axis=1, dtype=np.int32)
    return lengths


def _check_range(ids: np.ndarray, n: int, name: str) -> None:
    if ids.size and not (ids.min() >= 0 and ids.max() < n):
        raise Unsupported(f"{name} holds {int(ids.max())} and {int(ids.min())}: the table has rows 0 to {n - 1}")
