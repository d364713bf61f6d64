"""Control groups that may throttle a process."""

import pytest

from tuner.hardware.throttling import quota_of, throttled_from, throttled_s


def tree(root, cgroup, files):
    """Write a saved tree for process 42."""
    (root / "proc" / "42").mkdir(parents=True)
    (root / "proc" / "42" / "cgroup").write_text(cgroup)
    for name, text in files.items():
        path = root / "sys" / "fs" / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_version_two(tmp_path):
    """Quota and statistics of the process's own group."""
    root = tree(tmp_path, "0::/a\n", {"a/cpu.max": "150000 100000", "a/cpu.stat": "throttled_usec 2000000"})
    quota = quota_of(root, 42)
    assert (quota.cpus, throttled_s(quota)) == (1.5, 2.0)


def test_an_ancestor_limits_too(tmp_path):
    """The least quota on the way up counts."""
    root = tree(tmp_path, "0::/a/b\n", {"a/cpu.max": "100000 100000", "a/b/cpu.max": "max 100000"})
    assert quota_of(root, 42).cpus == 1.0


def test_hybrid_host_uses_the_cpu_controller(tmp_path):
    """A v1 line with cpu wins over `0::`."""
    files = {"cpu,cpuacct/a/cpu.cfs_quota_us": "50000", "cpu,cpuacct/a/cpu.cfs_period_us": "100000"}
    root = tree(tmp_path, "3:cpu,cpuacct:/a\n0::/other\n", files)
    assert quota_of(root, 42).cpus == 0.5


@pytest.mark.parametrize("text", ["", "max", "max 100000", "garbage", "100000 0"])
def test_no_quota(tmp_path, text):
    """Files that state none, or nothing that can be read."""
    assert quota_of(tree(tmp_path, "0::/\n", {"cpu.max": text}), 42).cpus is None


def test_minus_one_is_no_quota(tmp_path):
    """Version 1 writes -1."""
    files = {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}
    assert quota_of(tree(tmp_path, "3:cpu:/\n", files), 42).cpus is None


def test_throttled_time_of_both_versions():
    """Microseconds in version 2, nanoseconds in version 1."""
    assert throttled_from("nr_throttled 1\nthrottled_usec 1500000\n") == 1.5
    assert throttled_from("nr_throttled 1\nthrottled_time 1500000000\n") == 1.5
    assert throttled_from("nr_periods 1\n") is None


def test_no_control_groups(tmp_path):
    """Nothing is known, nothing fails."""
    quota = quota_of(tmp_path, 42)
    assert (quota.directories, quota.cpus, throttled_s(quota)) == ((), None, None)
