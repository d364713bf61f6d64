"""The command as a user runs it, on a tiny model and with the fake backend's chosen latencies."""

import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from tuner.cli.app import run

PROGRAM = str(Path(sys.executable).with_name("autotune"))
POISONED = ("onnx.py", "json.py", "numpy.py", "onnxruntime.py")
LIMIT_S = 150


class Running:
    """A command that is running, its progress read as events from standard error."""

    def __init__(self, argv, cwd):
        self.process = subprocess.Popen(
            [PROGRAM, *argv, "--progress", "json"],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.events = []

    def wait_for(self, kind):
        """Read progress until an event of this kind."""
        for line in self.process.stderr:
            event = json.loads(line)
            self.events.append(event)
            if event["kind"] == kind:
                return event
        raise AssertionError(f"ended without {kind}: {self.events[-1:]}")

    def end(self, number=None):
        """Send a signal if there is one, and return the exit code, standard output and the lines left on the other."""
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=LIMIT_S)
        return types.SimpleNamespace(code=self.process.returncode, out=out, err=err.splitlines())


@pytest.fixture(scope="module")
def start():
    """Return a function that starts a command; all are killed afterwards."""
    started = []

    def begin(*argv, cwd):
        running = Running(argv, cwd)
        started.append(running.process)
        return running

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def command():
    """Return a function that runs a command to its end; the result has exit code, stdout and stderr."""

    def run_to_its_end(*argv, cwd, limit_s=LIMIT_S, **env):
        ended = subprocess.run(
            [PROGRAM, *argv],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit_s,
            env={**os.environ, **env},
        )
        return types.SimpleNamespace(code=ended.returncode, out=ended.stdout, err=ended.stderr)

    return run_to_its_end


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return an empty current directory, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = tmp_path / "place"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def refusal(capsys):
    """Return a function that runs a command line in this process and gives the one line that it is refused with.

    Nothing else is said, and nothing is left behind in the current directory.
    """

    def refused(*argv, code=2):
        before = sorted(path.name for path in Path().iterdir())
        found = run(argv)
        out, err = capsys.readouterr()
        assert (found, out, err.count("\n")) == (code, "", 1), err
        assert sorted(path.name for path in Path().iterdir()) == before
        return err

    return refused


@pytest.fixture(scope="session")
def tune_options(tiny_onnx):
    """Return a function that makes the options of a run whose baseline is the fake backend of some latency."""

    def make(cwd, latency_us, *options):
        baseline = cwd / "baseline.json"
        baseline.write_text(json.dumps({"backend": "fake", "session": {"latency_us": latency_us, "threads": 1}}))
        return (
            *("--model", str(tiny_onnx), "--backends", "fake", "--baseline", str(baseline)),
            *("--fix", "session.threads=1", "--cache-dir", str(cwd / "cache"), "--study", str(cwd / "study")),
            *("--output", str(cwd / "p.json"), *options),
        )

    return make


@pytest.fixture(scope="session")
def full_run(tmp_path_factory, command, tune_options):
    """Return one whole run: a baseline of half a second a call, one trial, the playoff.

    The current directory holds files named like libraries, none of which may be imported.
    """
    cwd = tmp_path_factory.mktemp("full run")
    for name in POISONED:
        (cwd / name).write_text("raise SystemExit('imported from the current directory')")
    options = tune_options(cwd, 500_000, "--trials", "1", "--budget", "3m")
    result = command("tune", *options, "--json", "--progress", "json", cwd=cwd)
    return types.SimpleNamespace(cwd=cwd, options=options, result=result, output=cwd / "p.json", study=cwd / "study")
