"""Reads the user's data: texts (.jsonl, .txt) within bounds, arrays (.npz) without pickle; it runs no model."""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tuner.errors import UsageError
from tuner.models.wording import one_line

LINE_LIMIT_BYTES = 8 << 20
"""Longest line that is read: far above any text a model takes, far below what would fill memory."""
ROWS_LIMIT = 100_000
TEXT_SUFFIXES = (".jsonl", ".txt")


class Row(NamedTuple):
    """One usable row: a text, what stands beside it (``label``, ``pair``, ``score``), and where it was read."""

    text: str
    extra: dict[str, object]
    place: str = ""

    def shown(self) -> dict[str, object]:
        """Return the row as a metric of the user's gets it."""
        return ({"text": self.text} if self.text else {}) | self.extra


def check_data(path: str) -> int:
    """Check a data file and return the number of usable rows; needs little memory and no process.

    Raises:
        UsageError: No such file, wrong suffix, no usable row, or line n is bad or too long.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise UsageError(f"data file does not exist: {path}")
    if file.suffix == ".npz":
        return _rows_of(read_arrays(path), path)
    count = sum(1 for _ in _rows(file, path))
    if count == 0:
        raise UsageError(f'{path} has no usable rows: give one text a line, in .jsonl as {{"text": "…"}}')
    return count


def read_rows(path: str) -> list[Row]:
    """Read the rows of a .jsonl or .txt file, at most 100,000.

    Raises:
        UsageError: See `check_data`.
    """
    check_data(path)
    rows: list[Row] = []
    for row in _rows(Path(path).expanduser(), path):
        rows.append(row)
        if len(rows) == ROWS_LIMIT:
            break
    return rows


def read_arrays(path: str) -> dict[str, np.ndarray]:
    """Read the arrays of an .npz file by name; pickled objects are refused.

    Raises:
        UsageError: Not an .npz file, or it holds objects.
    """
    try:
        with np.load(Path(path).expanduser(), allow_pickle=False) as arrays:
            return {name: np.asarray(arrays[name], order="C") for name in arrays.files}
    except Exception as error:  # noqa: BLE001 - zip, header and pickle errors have no common base
        raise UsageError(f"{path} is no .npz file of plain arrays: {one_line(error)}") from None


def read_columns(path: str, inputs: Collection[str] = ()) -> list[Row]:
    """Read the arrays of one value a row that are no `inputs`, such as ``label``, as rows without a text.

    Raises:
        UsageError: See `read_arrays`.
    """
    arrays = read_arrays(path)
    columns = {name: array.tolist() for name, array in arrays.items() if array.ndim == 1 and name not in inputs}
    values = range(_rows_of(arrays, path))
    return [Row("", {name: column[i] for name, column in columns.items()}, f"row {i}") for i in values]


def _rows_of(arrays: dict[str, np.ndarray], path: str) -> int:
    counts = {name: len(array) for name, array in arrays.items() if array.ndim > 0}
    if not counts or min(counts.values()) == 0:
        raise UsageError(f"{path} has no usable rows: give arrays whose first axis counts rows")
    if len(set(counts.values())) != 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise UsageError(f"{path}: arrays differ in their number of rows: {listed}")
    return next(iter(counts.values()))


def _rows(file: Path, path: str) -> Iterator[Row]:
    if file.suffix not in TEXT_SUFFIXES:
        raise UsageError(f"{path}: data must be .jsonl, .txt or .npz")
    for number, line in _lines(file, path):
        if file.suffix == ".txt":
            yield Row(line.strip(), {}, f"line {number}")
            continue
        row = _json_row(line, number, path)
        if row is not None:
            yield row


def _json_row(line: str, number: int, path: str) -> Row | None:
    """Read one line of JSON; None for an object whose text is absent or blank."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        detail = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
        raise UsageError(f'{path}, line {number}: not JSON ({detail}): expected {{"text": "…"}}') from None
    if not isinstance(content, dict):
        raise UsageError(f'{path}, line {number}: not an object: expected {{"text": "…"}}')
    text = content.pop("text", None)
    if text is not None and not isinstance(text, str):
        raise UsageError(f"{path}, line {number}: text is no string")
    return Row(text, content, f"line {number}") if text and text.strip() else None


def _lines(file: Path, path: str) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of lines that are not blank, never holding more than the limit of one."""
    with file.open("rb") as stream:
        number = 0
        while raw := stream.readline(LINE_LIMIT_BYTES + 1):
            number += 1
            if len(raw) > LINE_LIMIT_BYTES:
                raise UsageError(f"{path}, line {number}: longer than {LINE_LIMIT_BYTES >> 20} MiB: split it")
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise UsageError(f"{path}, line {number}: not UTF-8: save the file as UTF-8") from None
            if line.strip():
                yield number, line
