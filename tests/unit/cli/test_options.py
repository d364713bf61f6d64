"""Options of the command line that are refused before anything starts."""

import os
from pathlib import Path

import pytest

from tuner.cli.app import run


def refusal(capsys, *arguments):
    """Return the one line that a command line is refused with."""
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)
    return printed.err.strip()


@pytest.mark.parametrize("option", ["--batch-size", "--trials", "--concurrency", "--seed"])
@pytest.mark.parametrize("value", ["1.5", "1.0", "two", ""])
def test_whole_numbers(capsys, option, value):
    """A fraction is refused, not rounded."""
    line = refusal(capsys, "--model", "there-is-none.onnx", option, value)
    assert line == f"autotune: Invalid value for {option}: {value!r} is no whole number"


def test_whole_numbers_of_other_commands(capsys):
    """So it is where a profile is measured or tuned again."""
    assert "--processes: '2.5' is no whole number" in refusal(capsys, "bench", "p.json", "--processes", "2.5")
    assert "--trials: '2.5' is no whole number" in refusal(capsys, "retune", "p.json", "--trials", "2.5")


def test_a_whole_number_is_taken(capsys):
    """The next thing is then looked at."""
    assert "does not exist" in refusal(capsys, "--model", "there-is-none.onnx", "--batch-size", "2", "--trials", "3")


@pytest.mark.parametrize("option", ["--output", "--study", "--cache-dir", "--data", "--storage", "--task"])
def test_empty_option(capsys, option):
    """A variable of the shell that is not set does not silently mean the default."""
    name = option.removeprefix("--").replace("-", "_")
    assert f"option {name} is empty" in refusal(capsys, "--model", "there-is-none.onnx", option, "")


def test_empty_cache_directory_of_other_commands(capsys):
    """The same where a command takes nothing else."""
    assert "--cache-dir is empty" in refusal(capsys, "cache", "--cache-dir", "")


def test_model_without_its_option(capsys, tmp_path):
    """A model that stands alone is shown with its option."""
    assert refusal(capsys, "tune", "good.onnx").endswith("did you mean --model good.onnx?")
    assert refusal(capsys, str(tmp_path)).endswith(f"write --model {tmp_path}")


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [(("retune", "p.json", "--metric", "f1"), "--trials"), (("--model", "m", "--backends", "nope"), "openvino")],
)
def test_far_words_are_not_suggested(capsys, arguments, wrong):
    """What shares a few letters with a known word was hardly meant by it."""
    assert f"did you mean {wrong}" not in refusal(capsys, *arguments)


@pytest.mark.parametrize("option", ["--empty-max", "--empty-min"])
def test_no_odd_options(capsys, option):
    """Options that the parser invents for lists are not there."""
    assert f"unknown option {option}" in refusal(capsys, "--model", "m", option)


def test_current_directory_is_gone(capsys, tmp_path, monkeypatch):
    """A directory that was removed under the shell is one line, not a bug."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert run(["--model", "/there/is/none.onnx"]) == 3
    assert capsys.readouterr().err == "autotune: the current directory is gone: change to one that exists\n"


def test_name_that_is_not_utf8(capsys, tiny_onnx, tmp_path, monkeypatch):
    """No file of JSON can name such a model: one line that says so, not a bug."""
    monkeypatch.chdir(tmp_path)
    model = os.fsdecode(b"bad\xff.onnx")
    Path(model).write_bytes(tiny_onnx.read_bytes())
    assert run(["--model", model, "--backends", "fake", "--cache-dir", "cache", "--progress", "none"]) == 2
    assert "is not UTF-8: rename it" in capsys.readouterr().err


def test_path_that_no_file_can_have(capsys, tmp_path):
    """Too long, or a link to itself: one line, not a bug."""
    (tmp_path / "loop").symlink_to("loop")
    assert refusal(capsys, "show", "q" * 5000) == f"autotune: {'q' * 200}: File name too long"
    assert refusal(capsys, "show", str(tmp_path / "loop" / "p.json")).startswith(f"autotune: {tmp_path / 'loop'}")
