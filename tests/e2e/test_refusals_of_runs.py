"""Runs that end with a reason after workers were started."""

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
    mine = '{"schema": "tuner.profile/1"}'
    (tmp_path / "p.json").write_text(mine)
    options = tune_options(tmp_path, 4000, "--budget", "2m", "--trials", "1", "--max", "peak_rss_bytes=1MiB")
    ended = command("tune", *options, "--progress", "none", cwd=tmp_path)
    assert (ended.code, ended.err.count("\n"), (tmp_path / "p.json").read_text()) == (4, 1, mine), ended.err
    assert "closest: " in ended.err


SMALL_DISK = """
mount -t tmpfs -o size=$1 tmpfs "$2" && cd "$2" && shift 2 || exit 99
"$@"
code=$?
find . -type f
exit $code
"""


@pytest.fixture
def on_small_disk(tmp_path):
    """Return a function that runs a command in a file system of some size; it prints the files that are left."""

    def run(size, *argv):
        disk = tmp_path / "disk"
        disk.mkdir()
        command = ["unshare", "--mount", "--map-root-user", "sh", "-c", SMALL_DISK, "sh", size, str(disk), *argv]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode in (1, 99) and "autotune" not in ended.stderr:
            pytest.skip("a file system cannot be mounted here")
        return ended

    return run


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare mounts the small disk")
@pytest.mark.parametrize("size", ["4k", "16k", "64k"])
def test_full_disk(tmp_path, on_small_disk, tune_options, size):
    """A full disk ends with exit code 3 and one line; no profile and no artifact is half-written."""
    on_disk = {str(tmp_path / name): name for name in ("study", "cache", "p.json")}
    options = [on_disk.get(option, option) for option in tune_options(tmp_path, 4000, "--progress", "none")]
    ended = on_small_disk(size, PROGRAM, "tune", *options)
    assert (ended.returncode, ended.stderr.count("\n")) == (3, 1), ended.stderr
    assert "free space" in ended.stderr
    left = [Path(line).name for line in ended.stdout.splitlines()]
    assert [name for name in left if name.endswith((".npz", ".tmp", "p.json"))] == []
