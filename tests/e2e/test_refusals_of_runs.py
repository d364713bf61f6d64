"""Runs that end with a reason after workers were started."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = str(Path(sys.executable).with_name("autotune"))


def test_budget_too_small(tmp_path, command, tune_options):
    """A budget that does not hold five pairs is said with the least that works."""
    ended = command("tune", *tune_options(tmp_path, 4000, "--budget", "9s"), "--progress", "none", cwd=tmp_path)
    assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
    assert "--budget 9s is too small" in ended.err
    assert "or more" in ended.err


def test_no_feasible_config(tmp_path, command, tune_options):
    """Nothing keeps the constraints: exit code 4, the closest miss, an existing profile left alone."""
    (tmp_path / "p.json").write_text("mine")
    options = tune_options(tmp_path, 4000, "--budget", "5m", "--trials", "1", "--max", "peak_rss_bytes=1MiB")
    ended = command("tune", *options, "--progress", "none", cwd=tmp_path)
    assert (ended.code, ended.err.count("\n"), (tmp_path / "p.json").read_text()) == (4, 1, "mine"), ended.err
    assert "closest: " in ended.err


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="prlimit stands in for a full disk")
@pytest.mark.parametrize("limit_bytes", [100, 2000])
def test_full_disk(tmp_path, tune_options, limit_bytes):
    """A full disk ends with exit code 3 and one line; no profile and no artifact is half-written."""
    argv = ["prlimit", f"--fsize={limit_bytes}", PROGRAM, *tune_options(tmp_path, 4000, "--progress", "none")]
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode")}  # cut-off bytecode would outlive the test
    ended = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, env=env)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (3, "", 1), ended.stderr
    assert "free space" in ended.stderr
    assert [path.name for path in tmp_path.rglob("*.npz")] == []
    assert not (tmp_path / "p.json").exists()
