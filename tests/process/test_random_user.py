"""A container's random user id: no passwd entry, no home, nothing of the user in the environment (case C37)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OPEN = """
import sys
from pathlib import Path
from tuner.artifacts.places import cache_directory
from tuner.hardware.detection import detect
from tuner.records.config import Config
from tuner.runner.local import LocalRunner

artifact, prepared, work = (Path(text) for text in sys.argv[2:5])
cache = cache_directory(None)
runner = LocalRunner(host=detect(), artifact_of=lambda _: artifact, prepared=prepared, work=work, cache_dir=cache)
arm = runner.open(Config(backend=sys.argv[1]))
print(arm.loaded.answer, cache)
arm.close()
"""
pytestmark = pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("setpriv") is None, reason="only root may become another user (with setpriv)"
)


@pytest.fixture
def run_as_nobody(tmp_path):
    """Return a function that runs Python code as a user id without a name; reading is allowed, writing is not."""

    def run(code, *args):
        work = tmp_path / "work"
        work.mkdir()
        work.chmod(0o777)
        capability = "+dac_read_search"  # the interpreter may lie in a directory that is closed to others
        command = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"]
        command += ["--inh-caps", capability, "--ambient-caps", capability]
        command += ["env", "-i", "PATH=/usr/bin:/bin", "HOME=/nonexistent", f"TMPDIR={work}"]
        command += [sys.executable, "-c", code, *args, str(work)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=work)

    return run


@pytest.mark.parametrize("backend", ["fake", "onnxruntime"])
def test_worker_runs(run_as_nobody, tiny_onnx, prepared, backend):
    """A worker starts, loads and leaves."""
    ended = run_as_nobody(OPEN, backend, str(tiny_onnx), str(prepared))
    assert (ended.stdout.split()[:1], ended.returncode) == (["loaded"], 0), ended.stderr


def test_cache_is_in_the_temporary_directory(run_as_nobody, tiny_onnx, prepared):
    """Without a home the cache is one of the user id's own."""
    ended = run_as_nobody(OPEN, "fake", str(tiny_onnx), str(prepared))
    assert Path(ended.stdout.split()[1]).name == "autotune-54321"
