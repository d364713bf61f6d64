"""`autotune exec`: settings are in force before a program starts, in it and in its children."""

import json
import os
import subprocess
import sys

import pytest

from tuner.hardware.memory_policy import probe_memory_policy

SHOW = """
import json, os, subprocess, sys
own = [sorted(os.sched_getaffinity(0)), os.environ.get("OMP_WAIT_POLICY"), os.environ.get("OMP_NUM_THREADS")]
if len(sys.argv) > 1:
    print(json.dumps(own))
else:
    child = subprocess.run([sys.executable, "-c", os.environ["SHOW"], "child"], capture_output=True, text=True)
    print(json.dumps([own, json.loads(child.stdout)]))
"""
n_cpus = len(os.sched_getaffinity(0))


@pytest.fixture
def write(tmp_path, profile_document):
    """Return a function that writes a profile whose best has process settings and one thread."""

    def make(**process):
        best = profile_document()["best"]
        best["config"] |= {"session": {}}
        best["config"]["process"] = {"placement": {"policy": "none"}, **process}
        path = tmp_path / "p.json"
        path.write_text(json.dumps(profile_document(best=best)))
        return path

    return make


def autotune(*words, env=None):
    """Run autotune; return its exit code, output and errors."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tuner", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SHOW": SHOW, **(env or {})},
    )
    return done.returncode, done.stdout, done.stderr


def test_in_force_in_program_and_children(write):
    """Mask and variables hold from the start, and are inherited; the user's own thread variables are gone."""
    path = write(placement={"policy": "spread", "n_cpus": 1}, env={"OMP_WAIT_POLICY": "passive"})
    words = ("exec", path, "--", sys.executable, "-c", SHOW)
    code, out, _ = autotune(*words, env={"OMP_NUM_THREADS": "64", "OMP_WAIT_POLICY": "active"})
    own, child = json.loads(out)
    assert (code, len(own[0]), own[1:]) == (0, 1, ["passive", None])
    assert own == child


def test_exit_code_is_the_commands(write):
    """What the command returns is what we return."""
    assert autotune("exec", write(), "--", sys.executable, "-c", "raise SystemExit(42)")[0] == 42


def test_mask_that_does_not_fit(write):
    """More CPUs than there are: exit code 5, one line with the way out, and the command does not run."""
    path = write(placement={"policy": "spread", "n_cpus": n_cpus + 1})
    code, out, err = autotune("exec", path, "--", sys.executable, "-c", "print('ran')")
    assert (code, out, len(err.splitlines())) == (5, "", 1)
    assert "--adapt" in err


def test_mask_that_is_adapted(write):
    """On demand the command runs with what is granted, and that is said on standard error."""
    path = write(placement={"policy": "spread", "n_cpus": n_cpus + 1})
    code, out, err = autotune("exec", "--adapt", path, "--", sys.executable, "-c", SHOW)
    assert (code, len(json.loads(out)[0][0])) == (0, n_cpus)
    assert err.startswith("autotune: adapted: process.placement: ")


@pytest.mark.skipif(not probe_memory_policy().is_permitted, reason="set_mempolicy is not permitted here")
def test_memory_policy_survives_exec(write):
    """The policy is in force in the program that we become."""
    code, out, _ = autotune(
        "exec", write(memory_policy="interleave"), "--", sys.executable, "-c",
        "from tuner.hardware.memory_policy import read_policy; print(read_policy().mode)",
    )  # fmt: skip
    assert (code, out) == (0, "interleave\n")


def test_shell_format_is_shell(write):
    """A shell takes the lines, and what it starts has mask and variables."""
    path = write(placement={"policy": "spread", "n_cpus": 1}, env={"OMP_WAIT_POLICY": "passive"})
    _, lines, _ = autotune("env", path)
    script = f'{lines}\nexec "$PYTHON" -c "$SHOW" child'
    done = subprocess.run(
        ["sh", "-c", script],  # noqa: S607 - the shell of the system is what is tested
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "SHOW": SHOW, "PYTHON": sys.executable, "OMP_NUM_THREADS": "64"},
    )
    mask, *variables = json.loads(done.stdout)
    assert (len(mask), variables) == (1, ["passive", None])
