"""Reads the headers of weight files by hand and refuses damaged ones; it loads no tensor and runs no pickle."""

import json
import math
import re
from pathlib import Path
from typing import NamedTuple

from tuner.errors import UsageError

LFS_START = b"version https://git-lfs"
HEADER_LIMIT_BYTES = 100_000_000
PICKLED = re.compile(r"pytorch_model(-\d+-of-\d+)?\.bin")


class Weights(NamedTuple):
    """The weight files of a directory, their size together and the number of parameters (None if not said)."""

    files: tuple[Path, ...]
    n_bytes: int
    n_parameters: int | None


def find_weights(directory: Path) -> Weights:
    """Find and check the weights of a Hugging Face directory.

    Raises:
        UsageError: None there, a shard missing, a file cut short, empty or a Git LFS pointer.
    """
    for single, index in (
        ("model.safetensors", "model.safetensors.index.json"),
        ("pytorch_model.bin", "pytorch_model.bin.index.json"),
    ):
        if (directory / single).exists():
            return _measure((directory / single,))
        if (directory / index).exists():
            return _measure(_shards(directory / index))
    others = sorted(directory.glob("*.safetensors"))
    if len(others) == 1:
        raise UsageError(f"{directory}: weights are named {others[0].name}: rename them to model.safetensors")
    raise UsageError(f"no weights in {directory}: expected model.safetensors (or its index), or pytorch_model.bin")


def _shards(index: Path) -> tuple[Path, ...]:
    try:
        names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, TypeError):
        raise UsageError(f"{index}: no readable weight_map: download the model again") from None
    if any(Path(name).name != name for name in names):
        raise UsageError(f"{index}: names a file outside its directory: do not use this model")
    missing = [name for name in names if not (index.parent / name).exists()]
    if missing:
        raise UsageError(
            f"{missing[0]} is missing in {index.parent}: {index.name} names {len(names)} files, {len(missing)} absent"
        )
    return tuple(index.parent / name for name in names)


def _measure(files: tuple[Path, ...]) -> Weights:
    counts: list[int | None] = []
    for path in files:
        refuse_placeholder(path)
        if path.suffix == ".safetensors":
            counts.append(safetensors_parameters(path))
        else:
            _check_pickled(path)
            counts.append(None)
    known = [count for count in counts if count is not None]
    n_parameters = sum(known) if len(known) == len(counts) else None
    return Weights(files, sum(path.stat().st_size for path in files), n_parameters)


def refuse_placeholder(path: Path) -> None:
    """Refuse an empty file and a Git LFS pointer.

    Raises:
        UsageError: It is one.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(len(LFS_START))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    if start == LFS_START:
        raise UsageError(f"{path} ({size} bytes) looks like a Git LFS pointer: run git lfs pull")
    if size == 0:
        raise UsageError(f"{path} is empty: download it again")


def safetensors_parameters(path: Path) -> int:
    """Return the number of parameters that the header of a safetensors file announces.

    The layout: 8 bytes (little endian) length of the header, the header as JSON, the tensors.

    Raises:
        UsageError: The file is cut short or is no safetensors file.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > HEADER_LIMIT_BYTES:
            raise UsageError(f"{path} is no safetensors file: its header would be {length} bytes")
        header = file.read(length)
    if len(header) < length:
        raise UsageError(f"{path} is truncated: header says {8 + length} bytes or more, file has {size}")
    try:
        tensors = {name: value for name, value in json.loads(header).items() if name != "__metadata__"}
        end = max((value["data_offsets"][1] for value in tensors.values()), default=0)
        count = sum(int(math.prod(value["shape"])) for value in tensors.values())
    except (ValueError, KeyError, AttributeError, TypeError, IndexError):
        raise UsageError(f"{path} is no safetensors file: its header cannot be read") from None
    expected = 8 + length + end
    if size < expected:
        raise UsageError(f"{path} is truncated: header says {expected} bytes, file has {size}")
    return count


def _check_pickled(path: Path) -> None:
    """Accept a pickled checkpoint by its name only; it is opened later, with weights_only=True."""
    if not PICKLED.fullmatch(path.name):
        raise UsageError(f"{path} is no weight file that is known here: give model.safetensors")
    with path.open("rb") as file:
        start = file.read(2)
    if start not in {b"PK", b"\x80\x02"}:
        raise UsageError(f"{path} is no PyTorch checkpoint: download it again")
