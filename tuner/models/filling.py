"""Makes inputs for any graph from its own names, dtypes and axes; it opens no graph."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from tuner.errors import UsageError
from tuner.records.model import TensorSpec

MASK = re.compile(r"mask|valid", re.IGNORECASE)
STATE = re.compile(r"state|hidden|cache|past|(^|_)[hc]\d*($|_)|context|memory", re.IGNORECASE)
RATE = re.compile(r"^sr$|sample_?rate|sampling_?rate", re.IGNORECASE)
TYPES = re.compile(r"type", re.IGNORECASE)
POSITIONS = re.compile(r"position", re.IGNORECASE)
LENGTHS = re.compile(r"len", re.IGNORECASE)
IDS = re.compile(r"(^|_)(ids?|tokens?)($|_|\d)", re.IGNORECASE)
RATE_HZ = 16_000
MOST_IDS = 100
"""Ids are drawn below this: any vocabulary is larger."""
TEXT_RANK = 2
LENGTH_CANDIDATES = (512, 256, 128, 64, 1024, 16_000, 224, 80, 32, 16, 8, 4, 3, 2, 1)


def ids_input(specs: Sequence[TensorSpec]) -> str | None:
    """Return the name of the input that takes token ids (rank 2 integers), or None."""
    integers = [spec for spec in specs if spec.dtype.startswith("int") and len(spec.shape) == TEXT_RANK]
    named = [spec.name for spec in integers if IDS.search(spec.name) and not TYPES.search(spec.name)]
    named = [name for name in named if not POSITIONS.search(name)]
    return next((name for name in named if name == "input_ids"), named[0] if named else None)


def fixed_rows(specs: Sequence[TensorSpec]) -> int | None:
    """Return the rows that the graph's batch axis is fixed at, None where it is free."""
    main = ids_input(specs) or specs[0].name
    shape = next(spec.shape for spec in specs if spec.name == main)
    return shape[0] if shape else None


def sample_rows(specs: Sequence[TensorSpec]) -> int:
    """Return the rows of one fidelity sample: one, or those that the graph is fixed at."""
    return fixed_rows(specs) or 1


def shape_of(spec: TensorSpec, batch: int, length: int) -> tuple[int, ...]:
    """Size every free axis: axis 0 (any free axis of a state) is the batch, channels of images 3, others `length`."""
    shape: list[int] = []
    for axis, size in enumerate(spec.shape):
        if size is not None:
            shape.append(size)
        elif axis == 0 or STATE.search(spec.name):
            shape.append(batch)
        elif axis == 1 and len(spec.shape) == 4:  # noqa: PLR2004 - batch, channels, height, width
            shape.append(3)
        else:
            shape.append(length)
    return tuple(shape)


def fill(
    specs: Sequence[TensorSpec],
    batch: int,
    length: int,
    random: np.random.Generator,
    text: Mapping[str, np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
    """Make one batch.

    Args:
        specs: The graph's inputs.
        batch: Size of free batch axes.
        length: Size of other free axes.
        random: Source of floats (standard normal) and ids.
        text: Tokenized arrays by the names ids, mask and types are found under; used where the shape fits.

    Raises:
        UsageError: An input has a dtype that cannot be made up.
    """
    arrays: dict[str, np.ndarray] = {}
    ids_name = ids_input(specs)
    for spec in specs:
        shape = shape_of(spec, batch, length)
        made = _from_text(spec, shape, ids_name, text) if text else None
        arrays[spec.name] = _make(spec, shape, length, random) if made is None else made
    return arrays


def _from_text(
    spec: TensorSpec, shape: tuple[int, ...], ids_name: str | None, text: Mapping[str, np.ndarray]
) -> np.ndarray | None:
    role = None
    if spec.name == ids_name:
        role = "input_ids"
    elif MASK.search(spec.name):
        role = "attention_mask"
    elif TYPES.search(spec.name):
        role = "token_type_ids"
    if role is None or len(shape) != TEXT_RANK:
        return None
    array = text[role]
    if array.shape[1] < shape[1]:
        array = np.pad(array, ((0, 0), (0, shape[1] - array.shape[1])))
    cut: np.ndarray = np.ascontiguousarray(array[: shape[0], : shape[1]].astype(spec.dtype))
    return cut if cut.shape == shape else None


def _make(spec: TensorSpec, shape: tuple[int, ...], length: int, random: np.random.Generator) -> np.ndarray:
    dtype = _numpy_dtype(spec)
    array: np.ndarray
    if MASK.search(spec.name):
        array = np.ones(shape)
    elif RATE.search(spec.name):
        array = np.full(shape, RATE_HZ)
    elif STATE.search(spec.name) and dtype.kind == "f":
        array = np.zeros(shape)
    elif dtype.kind == "f":
        array = random.standard_normal(shape)
    elif dtype.kind == "b" or TYPES.search(spec.name):
        array = np.zeros(shape)
    elif POSITIONS.search(spec.name) and shape:
        array = np.broadcast_to(np.arange(shape[-1]), shape)
    elif LENGTHS.search(spec.name):
        array = np.full(shape, length)
    elif shape:
        array = random.integers(1, MOST_IDS, shape)
    else:
        array = np.ones(shape)
    return np.ascontiguousarray(array.astype(dtype)).reshape(shape)


def _numpy_dtype(spec: TensorSpec) -> np.dtype:
    if spec.dtype in {"str", "object", "unknown"}:
        raise UsageError(f"input {spec.name!r} takes {spec.dtype}, which cannot be made up: give --data FILE.npz")
    return np.dtype(spec.dtype)
