"""Options of the command line that are refused before anything starts."""

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
