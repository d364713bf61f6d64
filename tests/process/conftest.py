"""Workers that are started for real, and a plug-in that misbehaves, installed into a folder of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tuner.hardware.detection import detect
from tuner.records.config import Config, ProcessSettings
from tuner.runner.local import LocalRunner

PLUGIN = '''
"""A backend that forges answers on standard output and leaves a process behind."""

import os
import subprocess
import sys
from pathlib import Path

from tuner.backends.fake import Fake, FakeSession

FORGED = '{"answer": "loaded", "load_s": 0.0}\\n{"answer": "bye"}\\n'


class Forger(Fake):
    name = "forger"

    def open(self, artifact, settings, context):
        print(FORGED, end="", flush=True)
        for descriptor in (1, 2):
            os.write(descriptor, FORGED.encode())
        subprocess.run(["echo", FORGED], check=True)
        return super().open(artifact, settings, context)


class Leaver(Fake):
    name = "leaver"

    def open(self, artifact, settings, context):
        left = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        Path(context.cache_dir).mkdir(parents=True, exist_ok=True)
        (Path(context.cache_dir) / "left.pid").write_text(str(left.pid))
        return super().open(artifact, settings, context)
'''
ENTRY_POINTS = "[tuner.backends]\nforger = misbehaving:Forger\nleaver = misbehaving:Leaver\n"


@pytest.fixture
def plugin_folder(tmp_path):
    """Return a folder for PYTHONPATH in which two backends are installed."""
    folder = tmp_path / "plugins"
    metadata = folder / "misbehaving-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / "misbehaving.py").write_text(PLUGIN)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: misbehaving\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


@pytest.fixture
def runner(prepared, tmp_path):
    """Return a runner for the fake backend."""
    return LocalRunner(
        host=detect(), artifact_of=lambda _: prepared, prepared=prepared, work=tmp_path, cache_dir=tmp_path / "cache"
    )


@pytest.fixture
def spawn(runner):
    """Return a function that starts a worker; all are ended afterwards."""
    workers = []

    def start(process=None, name="test"):
        worker, _ = runner.spawn(process or ProcessSettings(), name)
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        worker.close()


@pytest.fixture
def open_arm(runner):
    """Return a function that opens the fake backend with settings; all arms are ended afterwards."""
    arms = []

    def start(process=None, **session):
        arm = runner.open(Config(backend="fake", session=session, process=process or ProcessSettings()))
        arms.append(arm)
        return arm

    yield start
    for arm in arms:
        arm.close()


@pytest.fixture
def load_line(prepared, tmp_path):
    """Return a function that makes a ``load`` command as JSON values."""

    def make(backend="fake", **session):
        return {
            "command": "load",
            "backend": backend,
            "artifact": str(prepared),
            "session": session,
            "prepared": str(prepared),
            "cache_dir": str(tmp_path / "cache"),
        }

    return make


@pytest.fixture
def by_hand(tmp_path):
    """Return a function that feeds commands to a worker through pipes and returns answers and exit status."""

    def run(*commands, cwd=None, env=None, options=()):
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "tuner.worker", *options],
            input="".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in commands),
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd or tmp_path,
            env={**os.environ, **(env or {})},
        )
        return [json.loads(line) for line in ended.stdout.splitlines()], ended.returncode

    return run


@pytest.fixture
def script(tmp_path):
    """Return a function that starts a Python program of its own with pipes; all are killed afterwards."""
    started = []

    def start(code, *args, **options):
        path = Path(tmp_path / f"program{len(started)}.py")
        path.write_text(code)
        process = subprocess.Popen(
            [sys.executable, str(path), *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **options,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
