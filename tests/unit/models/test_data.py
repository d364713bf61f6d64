"""The user's data, checked before any process starts."""

import numpy as np
import pytest

from tuner.errors import UsageError
from tuner.models.data import LINE_LIMIT_BYTES, Row, check_data, read_rows


def test_rows_of_jsonl_keep_what_stands_beside_the_text(tmp_path):
    """Labels travel with their text; blank lines and empty texts are left out."""
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "one", "label": 1}\n\n{"text": " "}\n{"label": 2}\n{"text": "zwei"}\n')
    assert read_rows(str(file)) == [Row("one", {"label": 1}, "line 1"), Row("zwei", {}, "line 5")]
    assert check_data(str(file)) == 2


def test_rows_of_txt_are_its_lines(tmp_path):
    """One text a line; a byte-order mark is no text."""
    file = tmp_path / "a.txt"
    file.write_text("\ufeffone\n\n two \n", encoding="utf-8")
    assert [row.text for row in read_rows(str(file))] == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b"", "no usable rows"),
        ("a.jsonl", b'{"text": ""}\n', "no usable rows"),
        ("a.jsonl", b'{"text": "x"}\n{"text": \n', "line 2: not JSON"),
        ("a.jsonl", b"[1]\n", "line 1: not an object"),
        ("a.jsonl", b'{"text": 3}\n', "line 1: text is no string"),
        ("a.jsonl", b"[" * 100_000, "line 1: not JSON"),
        ("a.txt", b"ok\n\xff\xfe\n", "line 2: not UTF-8"),
        ("a.txt", b"\n \n", "no usable rows"),
        ("a.csv", b"text\n", r"must be \.jsonl, \.txt or \.npz"),
        ("a.npz", b"no zip", "is no .npz file"),
    ],
)
def test_bad_data_names_file_and_line(tmp_path, name, content, message):
    """Every kind of bad data is one line with the place."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message) as caught:
        check_data(str(tmp_path / name))
    assert name in str(caught.value)


def test_missing_file(tmp_path):
    """The file is named."""
    with pytest.raises(UsageError, match="data file does not exist"):
        check_data(str(tmp_path / "a.jsonl"))


def test_line_of_100_mb_is_refused_by_its_number(tmp_path):
    """The line is never held whole."""
    file = tmp_path / "a.jsonl"
    with file.open("wb") as stream:
        stream.write(b'{"text": "short"}\n{"text": "')
        stream.truncate(100_000_000)
    with pytest.raises(UsageError, match="line 2: longer than 8 MiB"):
        check_data(str(file))


def test_longest_line_is_read(tmp_path):
    """A line exactly at the limit holds."""
    file = tmp_path / "a.txt"
    file.write_bytes(b"x" * (LINE_LIMIT_BYTES - 1) + b"\n")
    assert check_data(str(file)) == 1


def test_arrays_are_counted_by_their_first_axis(tmp_path):
    """Scalars count for every row."""
    np.savez(tmp_path / "a.npz", x=np.zeros((3, 4)), rate=np.int64(16_000))
    assert check_data(str(tmp_path / "a.npz")) == 3


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((0, 4))}, "no usable rows"),
        ({"x": np.zeros(3), "y": np.zeros(4)}, "x 3, y 4"),
        ({"x": np.array([{}, {}], dtype=object)}, "is no .npz file of plain arrays"),
    ],
)
def test_bad_arrays_are_refused(tmp_path, arrays, message):
    """No rows, unequal rows and pickled objects."""
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(UsageError, match=message):
        check_data(str(tmp_path / "a.npz"))
