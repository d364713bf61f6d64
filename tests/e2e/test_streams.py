"""Standard streams that are closed, full, read by a program that has gone, or not Unicode."""

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tuner.cli.app import run
from tuner.records.events import Event
from tuner.reporting.progress import reporter

PROGRAM = str(Path(sys.executable).with_name("autotune"))


class Gone(io.StringIO):
    """A stream whose reader has gone; it keeps what was to be written."""

    def __init__(self):
        super().__init__()
        self.lost = []

    def write(self, text):
        """Fail as a pipe does."""
        self.lost.append(text)
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE), text)


@pytest.fixture
def shell(tmp_path):
    """Return a function that runs a line of bash; standard output is buffered, as where no variable says otherwise."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run_line(line, **env):
        ended = subprocess.run(
            ["/bin/bash", "-c", line.replace("autotune", PROGRAM)],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=environ | env,
        )
        return ended.stdout.strip(), ended.stderr

    return run_line


@pytest.mark.parametrize("words", ["host --json", "host", "--help"])
def test_reader_that_has_gone(shell, words):
    """`autotune … | head -1` is no error, whoever notices that the reader has gone."""
    assert shell(f"autotune {words} | true; echo ${{PIPESTATUS[0]}}") == ("0", "")


def test_full_disk_under_the_output(shell):
    """Output that is lost is exit code 3, one line, no bug."""
    out, err = shell("autotune host --json > /dev/full; echo $?")
    assert (out, err) == ("3", "autotune: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full", ">&- 2>&- <&-"])
def test_error_that_nobody_can_read(shell, closed):
    """The exit code says it all the same."""
    assert shell(f"(autotune nope {closed}); echo $?") == ("2", "")


def test_terminal_without_unicode(shell):
    """Letters that an encoding lacks are printed as escapes."""
    out, err = shell("autotune --model ./模型 || echo $?", PYTHONIOENCODING="ascii")
    assert (out, err) == ("2", "autotune: directory does not exist: ./\\u6a21\\u578b\n")


@pytest.mark.parametrize("progress", ["plain", "json"])
def test_progress_that_nobody_reads(monkeypatch, progress):
    """A run outlives the reader of its progress: every line is tried, and none ends it."""
    gone = Gone()
    monkeypatch.setattr(sys, "stderr", gone)
    with reporter(progress) as on_event:
        for text in ("host is quiet", "host is busy"):
            on_event(Event(kind="audit", text=text))
    assert ["quiet" in line for line in gone.lost] == [True, False]


@pytest.mark.parametrize("progress", ["auto", "plain", "json"])
def test_progress_without_standard_error(monkeypatch, capsys, progress):
    """A closed standard error is None: progress is shown nowhere, not on standard output instead."""
    monkeypatch.setattr(sys, "stderr", None)
    with reporter(progress) as on_event:
        on_event(Event(kind="audit", text="host is quiet"))
    assert capsys.readouterr() == ("", "")


def test_control_characters_are_not_printed(capsys):
    """What a name or a library says does not steer the terminal."""
    assert run(["show", "a\x1b[2Jb.json"]) == 2
    assert capsys.readouterr().err.startswith("autotune: a[2Jb.json: ")


def test_words_that_no_option_takes(capsys):
    """An expression without its quotes is several words: the error says to quote it."""
    code = run(["--model", "good.onnx", "--constraint", "load_s", "<=", "5s"])
    assert (code, capsys.readouterr().err) == (
        2,
        "autotune: <= 5s: belongs to no option; quote an expression or a name with spaces\n",
    )
