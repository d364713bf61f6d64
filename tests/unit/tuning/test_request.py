"""Options as texts become a request, or one line that says what is wrong."""

import pytest

from tuner.errors import UsageError
from tuner.tuning.line import tune
from tuner.tuning.request import (
    TuneRequest,
    check_sampler,
    make_request,
    output_path,
    parse_duration,
    parse_fixes,
    parse_lengths,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90.0), ("15m", 900.0), ("15min", 900.0), ("1.5h", 5400.0), ("45", 45.0), (" 2 m ", 120.0)],
)
def test_durations(text, seconds):
    """Seconds, minutes and hours."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "-5m", "5 weeks", "m", "nan", "1e400", "5ms"])
def test_what_is_no_duration(text):
    """Anything else, and nothing, is refused with an example."""
    with pytest.raises(UsageError, match=r"--budget .* such as 90s, 15m or 1h"):
        parse_duration(text)


@pytest.mark.parametrize(("text", "lengths"), [("128", (128,)), ("128,512", (128, 512)), ("512, 128,", (512, 128))])
def test_lengths(text, lengths):
    """Lengths stay in the order of the traffic."""
    assert parse_lengths(text) == lengths


def test_lengths_from_a_file(tmp_path):
    """A file has one length a line."""
    (tmp_path / "lengths.txt").write_text("60\n60\n512\n")
    assert parse_lengths(str(tmp_path / "lengths.txt")) == (60, 60, 512)


@pytest.mark.parametrize("text", ["", "0", "128,0", "long", "-1", "1.5"])
def test_bad_lengths(text):
    """A length below one or no number is refused with the option's name."""
    with pytest.raises(UsageError, match="--lengths"):
        parse_lengths(text)


@pytest.mark.parametrize("content", [b"", b"12\nx\n", b"\xff\xfe\x00", b"0\n"])
def test_bad_file_of_lengths(tmp_path, content):
    """A file without usable lengths is refused with the option's name."""
    (tmp_path / "lengths.txt").write_bytes(content)
    with pytest.raises(UsageError, match="--lengths"):
        parse_lengths(str(tmp_path / "lengths.txt"))


def test_fixes():
    """The first = divides key and value."""
    assert parse_fixes((" a.b = x=y ", "c=1")) == {"a.b": "x=y", "c": "1"}


@pytest.mark.parametrize("text", ["a.b", "=1", ""])
def test_bad_fixes(text):
    """A text without key or = is refused with an example."""
    with pytest.raises(UsageError, match="write --fix KEY=VALUE"):
        parse_fixes((text,))


def test_two_values_for_one_key():
    """Options that contradict each other are refused; the same one twice is not."""
    with pytest.raises(UsageError, match=r"--fix a\.b is given twice: 1 and 2"):
        parse_fixes(("a.b=1", "a.b=2"))
    assert parse_fixes(("a.b=1", "a.b=1")) == {"a.b": "1"}


def test_seed_below_zero():
    """Generators of numbers take none: it is refused before anything starts."""
    with pytest.raises(UsageError, match="option seed"):
        make_request({"model": "m", "seed": -1})


def test_unknown_sampler():
    """The samplers are named."""
    with pytest.raises(UsageError, match="choose one of auto, tpe, random, brute"):
        check_sampler("grid")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("/models/bge small/", "bge_small.profile.json"),
        ("org/name", "name.profile.json"),
        ("mean.onnx", "mean.onnx.profile.json"),
        ("模型", "模型.profile.json"),
        ("..", "model.profile.json"),
    ],
)
def test_default_output(tmp_path, monkeypatch, model, name):
    """The profile is named after the model, safely, in the current directory."""
    monkeypatch.chdir(tmp_path)
    assert output_path(TuneRequest(model=model)) == tmp_path / name


def test_output_makes_its_directory(tmp_path):
    """A directory that does not exist yet is made."""
    path = tmp_path / "a" / "b" / "p.json"
    assert (output_path(TuneRequest(model="m", output=str(path))), path.parent.is_dir()) == (path, True)


def test_output_leaves_no_probe(tmp_path):
    """Checking that the place can be written leaves nothing there."""
    output_path(TuneRequest(model="m", output=str(tmp_path / "p.json")))
    assert list(tmp_path.iterdir()) == []


def test_output_that_is_a_directory(tmp_path):
    """A directory is no file name."""
    with pytest.raises(UsageError, match="is a directory: name a file"):
        output_path(TuneRequest(model="m", output=str(tmp_path)))


def test_output_below_a_file(tmp_path):
    """A place that cannot be written is found before anything is spent."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"--output: .* cannot be written"):
        output_path(TuneRequest(model="m", output=str(tmp_path / "file" / "p.json")))


@pytest.mark.parametrize("content", [b"\x08\x08onnx", b"{}", b"row\n"])
def test_output_that_is_another_file(tmp_path, content):
    """The model, or the data, is not replaced by the profile."""
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="exists and is no profile"):
        output_path(TuneRequest(model="m", output=str(path)))


@pytest.mark.parametrize("content", [b"", b'{\n "schema": "tuner.profile/1"}', b'{"a": 1, "schema":"tuner.profile/2"}'])
def test_output_that_is_a_profile(tmp_path, content):
    """An older profile is replaced, and a file that somebody made with mktemp."""
    path = tmp_path / "p.json"
    path.write_bytes(content)
    assert output_path(TuneRequest(model="m", output=str(path))) == path


def test_output_that_is_a_device():
    """The rename at the end would put a file in the place of /dev/null."""
    with pytest.raises(UsageError, match="exists and is no profile"):
        output_path(TuneRequest(model="m", output="/dev/null"))


def test_output_of_too_long_a_name(tmp_path):
    """The system's refusal is passed on."""
    with pytest.raises(UsageError, match="File name too long"):
        output_path(TuneRequest(model="m", output=str(tmp_path / ("x" * 300))))


def test_tune_refuses_unknown_options():
    """The Python call names the option it does not have."""
    with pytest.raises(UsageError, match=r"tune\(\) has no option 'modell'"):
        tune(modell="x")


def test_tune_refuses_a_bad_budget():
    """The Python call reads the budget as the command does."""
    with pytest.raises(UsageError, match="--budget 'soon'"):
        tune(model="x", budget="soon")


@pytest.mark.parametrize(
    "options",
    [{}, {"model": 1}, {"model": "x", "batch_size": 0}, {"model": "x", "trials": 0}, {"model": "x", "lengths": "1"}],
)
def test_tune_refuses_bad_values(options):
    """A value of another type or out of range is one line, not a traceback of a library."""
    with pytest.raises(UsageError, match=r"^option (model|batch_size|trials|lengths): "):
        tune(**options)


def test_tune_takes_lists():
    """Sequences may be lists in Python; the model then fails by itself."""
    with pytest.raises(UsageError, match="does not exist"):
        tune(model="./no/such/dir", lengths=[128], backends=["fake"])
