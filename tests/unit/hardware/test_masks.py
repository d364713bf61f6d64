"""Online, allowed and given CPUs (C05, C13)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tuner.errors import UsageError
from tuner.hardware import detect


def test_an_allowed_set_that_does_not_start_at_zero(plant):
    """C05: mask 8-15 of 64 online CPUs."""
    host = detect(plant({"sys/devices/system/cpu/online": "0-63", "proc/self/status": "Cpus_allowed_list:\t8-15"}))

    assert (host.allowed_cpus, host.cpu_budget, host.bound_by) == ((8, 9, 10, 11, 12, 13, 14, 15), 8, "affinity")


def test_offline_cpus_are_never_allowed(plant):
    """Gaps in the online list are gaps in the allowed CPUs, whatever the mask says."""
    host = detect(plant({"sys/devices/system/cpu/online": "0,4-7", "proc/self/status": "Cpus_allowed_list:\t0-7"}))

    assert (host.allowed_cpus, host.bound_by) == ((0, 4, 5, 6, 7), "online")


def test_given_affinity_wins_over_the_mask(sixteen):
    """--affinity replaces the mask of the process."""
    root = sixteen({"proc/self/status": "Cpus_allowed_list:\t0-3"})

    assert detect(root, affinity="8-9").allowed_cpus == (8, 9)


def test_given_affinity_does_not_leave_the_cpuset(sixteen):
    """A cpuset still binds; it counts as affinity."""
    host = detect(sixteen({"sys/fs/cgroup/cpuset.cpus.effective": "4-7"}), affinity="0-5")

    assert (host.allowed_cpus, host.bound_by) == ((4, 5), "affinity")


@pytest.mark.parametrize("affinity", ["99", "x", "3-1", ""])
def test_a_useless_affinity_is_refused(affinity, sixteen):
    """A list that names no usable CPU is the user's mistake."""
    root = sixteen({})

    with pytest.raises(UsageError, match="--affinity"):
        detect(root, affinity=affinity)


def test_a_cpuset_of_the_parent_binds_where_the_own_one_is_empty(sixteen):
    """An empty cpuset.cpus means that the parent's counts."""
    host = detect(
        sixteen(
            {
                "proc/self/cgroup": "0::/a/b",
                "sys/fs/cgroup/a/cpuset.cpus.effective": "2-5",
                "sys/fs/cgroup/a/b/cpuset.cpus": "",
            }
        )
    )

    assert host.allowed_cpus == (2, 3, 4, 5)


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"sys/fs/cgroup/cpuset.cpus.effective": "90-95"}, "cpuset_ignored"),
        ({"proc/self/status": "Cpus_allowed_list:\t90-95"}, "affinity_ignored"),
        ({"proc/self/status": "Cpus_allowed_list:\tzz"}, "unreadable_file"),
    ],
)
def test_impossible_masks_are_left_out_with_a_notice(files, code, sixteen):
    """All online CPUs stay and the host says why."""
    host = detect(sixteen(files))

    assert (16, [code]) == (len(host.allowed_cpus), [notice.code for notice in host.notices])


def test_no_status_means_all_online(plant):
    """Below a root without a status file every online CPU is allowed."""
    assert detect(plant({"sys/devices/system/cpu/online": "0-2"})).allowed_cpus == (0, 1, 2)


def test_online_cpus_from_stat_where_nothing_else_tells(plant):
    """/proc/stat has a line for every online CPU."""
    assert detect(plant({"proc/stat": "cpu  1 2\ncpu0 1\ncpu2 1\nintr 5"})).online_cpus == (0, 2)


def test_an_empty_root_still_gives_one_cpu(tmp_path):
    """Nothing readable: one CPU, everything unknown, all of it said."""
    host = detect(tmp_path)

    assert (
        host.allowed_cpus,
        host.cpu_budget,
        host.memory_budget_bytes,
        host.virtualized,
        host.isa,
    ) == ((0,), 1, None, None, ())


def test_an_empty_root_says_everything_that_is_missing(tmp_path):
    """Every gap has its notice."""
    assert {"online_cpus_unknown", "quota_unknown", "topology_unknown", "isa_unknown", "memory_unknown"} == {
        notice.code for notice in detect(tmp_path).notices
    }


def test_a_root_that_does_not_exist_is_refused(tmp_path):
    """A mistyped --root is the user's mistake."""
    with pytest.raises(UsageError, match="no such directory"):
        detect(tmp_path / "absent")


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system has no masks")
def test_the_running_systems_mask_is_asked_for():
    """Without a root the mask is the process's own, not what a file says."""
    assert tuple(sorted(os.sched_getaffinity(0))) == detect().allowed_cpus


def test_a_system_without_masks_is_detected_and_says_so(tmp_path):
    """C13: sched_getaffinity is absent, as on macOS and Windows; nothing raises."""
    (tmp_path / "sitecustomize.py").write_text("import os\ndel os.sched_getaffinity, os.sched_setaffinity\n")
    code = (
        "from tuner.hardware import detect; host = detect();"
        "print(host.is_pinning_available, [n.code for n in host.notices if n.code == 'pinning_unavailable'])"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).resolve().parents[3])])

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "False ['pinning_unavailable']\n"
