"""Reads what must be known of an ONNX file before any engine opens it; a small protobuf walker, no onnx import.

Field numbers are those of onnx.proto3: ModelProto 1 ir_version, 7 graph; GraphProto 1 node, 5 initializer;
NodeProto 5 attribute; AttributeProto 5 t, 6 g; TensorProto 1 dims, 13 external_data (1 key, 2 value).
"""

import math
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tuner.errors import UsageError
from tuner.models.weights import refuse_placeholder

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class GraphSummary(NamedTuple):
    """What an ONNX file says of itself.

    Attributes:
        external: Locations of external data relative to the file, as written in it.
        n_bytes: Size of the file and its external data.
    """

    ir_version: int
    external: tuple[str, ...]
    n_parameters: int
    n_bytes: int


def summarize(path: Path) -> GraphSummary:
    """Walk an ONNX file.

    Raises:
        UsageError: Not an ONNX file, a Git LFS pointer, or external data that is missing or lies outside.
    """
    refuse_placeholder(path)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            ir_version, external, n_parameters = _walk_model(content)
        except (IndexError, ValueError):
            raise UsageError(f"{path} is no readable ONNX file: damaged or truncated, download it again") from None
    if ir_version == 0:
        raise UsageError(f"{path} is no ONNX file: it names no IR version")
    sizes = [path.stat().st_size]
    for location in external:
        if Path(location).is_absolute() or ".." in Path(location).parts:
            raise UsageError(f"{path} keeps weights in {location!r}, outside its directory: do not use this file")
        data = path.parent / location
        if not data.is_file():
            raise UsageError(f"external data missing: {path.name} needs {location} beside it in {path.parent}")
        refuse_placeholder(data)
        sizes.append(data.stat().st_size)
    return GraphSummary(ir_version, external, n_parameters, sum(sizes))


def _walk_model(content: mmap.mmap) -> tuple[int, tuple[str, ...], int]:
    ir_version = 0
    external: dict[str, None] = {}
    n_parameters = 0
    for number, wire, start, end in _fields(content, 0, len(content)):
        if number == 1 and wire == VARINT:
            ir_version = start
        elif number == 7 and wire == BYTES:  # noqa: PLR2004 - field numbers are in the module's docstring
            for dims, locations in _tensors(content, start, end):
                n_parameters += math.prod(dims)
                external.update(dict.fromkeys(locations))
    return ir_version, tuple(external), n_parameters


def _tensors(content: mmap.mmap, start: int, end: int) -> Iterator[tuple[list[int], list[str]]]:
    """Yield dims and external locations of every tensor of a graph, of its nodes' attributes and of their subgraphs."""
    for number, wire, low, high in _fields(content, start, end):
        if number == 5 and wire == BYTES:  # noqa: PLR2004
            yield _tensor(content, low, high)
        elif number == 1 and wire == BYTES:
            for _, _, inner_low, inner_high in _some(content, low, high, 5):
                for _, _, tensor_low, tensor_high in _some(content, inner_low, inner_high, 5):
                    yield _tensor(content, tensor_low, tensor_high)
                for _, _, graph_low, graph_high in _some(content, inner_low, inner_high, 6):
                    yield from _tensors(content, graph_low, graph_high)


def _tensor(content: mmap.mmap, start: int, end: int) -> tuple[list[int], list[str]]:
    dims: list[int] = []
    locations: list[str] = []
    for number, wire, low, high in _fields(content, start, end):
        if number == 1 and wire == VARINT:
            dims.append(low)
        elif number == 1 and wire == BYTES:
            dims.extend(_packed(content, low, high))
        elif number == 13 and wire == BYTES:  # noqa: PLR2004
            pair = {field: content[a:b] for field, _, a, b in _fields(content, low, high)}
            if pair.get(1) == b"location":
                locations.append(pair[2].decode())
    return dims, locations


def _packed(content: mmap.mmap, position: int, end: int) -> Iterator[int]:
    while position < end:
        value, position = _varint(content, position)
        yield value


def _some(content: mmap.mmap, start: int, end: int, wanted: int) -> Iterator[tuple[int, int, int, int]]:
    return (field for field in _fields(content, start, end) if field[0] == wanted and field[1] == BYTES)


def _fields(content: mmap.mmap, position: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number, wire type, start, end) of fields; for a varint, start is the value and end is 0."""
    while position < end:
        key, position = _varint(content, position)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, position = _varint(content, position)
            yield number, wire, value, 0
            continue
        if wire == BYTES:
            length, position = _varint(content, position)
        elif wire in {FIXED64, FIXED32}:
            length = 8 if wire == FIXED64 else 4
        else:
            raise ValueError("not a protobuf wire type")
        if number == 0 or position + length > end:
            raise ValueError("a field ends outside its message")
        yield number, wire, position, position + length
        position += length


def _varint(content: mmap.mmap, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the top bit says that more follows
            return value, position
        shift += 7
        if shift > 63:  # noqa: PLR2004 - 64 bits is all there is
            raise ValueError("a number that is too long")
