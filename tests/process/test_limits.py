"""Real limits: a mask, CPU quotas that the test makes itself, odd OpenMP variables; the host and the space follow."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

CGROUPS = Path("/sys/fs/cgroup")
ODD = {
    "OMP_NUM_THREADS": "64",
    "OMP_THREAD_LIMIT": "1",
    "OMP_PLACES": "{0}",
    "OMP_PROC_BIND": "close",
    "GOMP_CPU_AFFINITY": "0",
    "GOMP_SPINCOUNT": "nonsense",
    "KMP_AFFINITY": "granularity=fine,compact,1,0",
    "KMP_HW_SUBSET": "1c,1t",
    "MKL_NUM_THREADS": "64",
}
JOIN = "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid())); os.execv(sys.argv[2], sys.argv[2:])"
n_cpus = len(os.sched_getaffinity(0))


def autotune(*words, before=(), env=None):
    """Run autotune with a program before it and return its only JSON document."""
    command = [*before, sys.executable, "-P", "-m", "tuner", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})})
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def most_threads(space):
    """Return the largest thread count in any backend of a described space, whose values are texts."""
    return max(
        int(digits)
        for backend in space["backends"]
        for parameter in backend["parameters"]
        if parameter["name"].endswith("threads")
        for digits in re.findall(r"\d+", parameter["values"])
    )


@pytest.fixture
def quota():
    """Return a function that makes a control group with a quota in CPUs and returns the words that join it."""
    with contextlib.ExitStack() as stack:

        def make(version, cpus):
            parent = {1: CGROUPS / "cpu", 2: CGROUPS}[version]
            if version == 2 and "cpu" not in _words(parent / "cgroup.controllers"):
                pytest.skip("the cpu controller is not in a version 2 hierarchy here")
            if version == 1 and not (parent / "cpu.cfs_quota_us").exists():
                pytest.skip("the cpu controller is not in a version 1 hierarchy here")
            group = parent / f"autotune-test-{uuid.uuid4().hex[:8]}"
            try:
                group.mkdir()
            except OSError as error:
                pytest.skip(f"control groups cannot be made here: {error.strerror}")
            stack.callback(group.rmdir)
            try:
                if version == 1:
                    (group / "cpu.cfs_period_us").write_text("100000")
                    (group / "cpu.cfs_quota_us").write_text(str(int(cpus * 100_000)))
                else:
                    (group / "cpu.max").write_text(f"{int(cpus * 100_000)} 100000")
            except OSError as error:
                pytest.skip(f"a quota cannot be set here: {error.strerror}")
            return (sys.executable, "-c", JOIN, str(group / "cgroup.procs"))

        yield make


def _words(file):
    """Return the words of a file, none if it is not there."""
    return file.read_text().split() if file.exists() else []


@pytest.mark.skipif(shutil.which("taskset") is None or n_cpus < 2, reason="needs taskset and two CPUs")
def test_mask_of_one_cpu():
    """Under a mask the budget is that of the mask, and so are the threads that are searched."""
    last = max(os.sched_getaffinity(0))
    before = ("taskset", "-c", str(last))
    host = autotune("host", "--json", before=before)
    found = (host["allowed_cpus"], host["cpu_budget"], host["bound_by"])
    assert found == ([last], 1, "affinity")
    assert most_threads(autotune("show", "space", "--json", before=before)) == 1


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("cpus", "budget"), [(1.5, 1), (0.5, 1)])
def test_quota(quota, version, cpus, budget):
    """Under a quota the budget is its whole part, at least one; the space follows."""
    before = quota(version, cpus)
    host = autotune("host", "--json", before=before)
    assert (host["quota_cpus"], host["cpu_budget"], host["cgroup_version"]) == (cpus, budget, version)
    assert len(host["allowed_cpus"]) == n_cpus
    assert most_threads(autotune("show", "space", "--json", before=before)) == budget


@pytest.mark.parametrize("version", [1, 2])
def test_quota_below_one_is_said(quota, version):
    """Half a CPU is one thread, throttled in every period."""
    host = autotune("host", "--json", before=quota(version, 0.5))
    assert "quota_below_one" in {notice["code"] for notice in host["notices"]}


@pytest.mark.parametrize("version", [1, 2])
def test_quota_above_the_machine(quota, version):
    """A quota with room for all CPUs does not bind."""
    host = autotune("host", "--json", before=quota(version, n_cpus + 2.0))
    assert (host["cpu_budget"], host["bound_by"]) == (n_cpus, autotune("host", "--json")["bound_by"])


def test_odd_variables_change_nothing():
    """OpenMP variables of the user change neither the host nor the space."""
    plain = {name: value for name, value in autotune("host", "--json").items() if name != "memory_budget_bytes"}
    odd = autotune("host", "--json", env=ODD)
    assert {name: value for name, value in odd.items() if name != "memory_budget_bytes"} == plain
    assert autotune("show", "space", "--json", env=ODD) == autotune("show", "space", "--json")
