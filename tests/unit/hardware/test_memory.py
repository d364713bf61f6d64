"""Memory budgets (C14) and memory nodes."""

import pytest

from tuner.hardware import detect

GIB = 1 << 30
LARGE = {"proc/meminfo": "MemTotal: 790626304 kB\nMemAvailable: 780000000 kB"}


def test_a_limit_on_the_parent_group_bounds_a_large_host(sixteen):
    """C14: 754 GiB of host memory, 8 GiB on the parent, 2 GiB in use: 6 GiB."""
    host = detect(
        sixteen(
            {
                **LARGE,
                "proc/self/cgroup": "0::/pod/container",
                "sys/fs/cgroup/pod/memory.max": str(8 * GIB),
                "sys/fs/cgroup/pod/memory.current": str(2 * GIB),
                "sys/fs/cgroup/pod/container/memory.max": "max",
            }
        )
    )

    assert (host.memory_budget_bytes, host.memory_bound_by) == (6 * GIB, "cgroup")


def test_inactive_file_pages_do_not_count_as_use(sixteen):
    """The kernel drops them before anything is killed."""
    host = detect(
        sixteen(
            {
                **LARGE,
                "sys/fs/cgroup/memory.max": str(8 * GIB),
                "sys/fs/cgroup/memory.current": str(7 * GIB),
                "sys/fs/cgroup/memory.stat": f"anon {2 * GIB}\ninactive_file {5 * GIB}",
            }
        )
    )

    assert host.memory_budget_bytes == 6 * GIB


def test_use_of_the_child_stands_in_where_the_parents_is_missing(sixteen):
    """The parent uses at least what its child does."""
    host = detect(
        sixteen(
            {
                **LARGE,
                "proc/self/cgroup": "0::/pod/container",
                "sys/fs/cgroup/pod/memory.max": str(8 * GIB),
                "sys/fs/cgroup/pod/container/memory.current": str(3 * GIB),
            }
        )
    )

    assert host.memory_budget_bytes == 5 * GIB


def test_the_throttling_limit_counts_too(sixteen):
    """Above memory.high a process is slowed to a crawl."""
    files = {"sys/fs/cgroup/memory.max": str(8 * GIB), "sys/fs/cgroup/memory.high": str(4 * GIB)}

    assert detect(sixteen(LARGE | files)).memory_budget_bytes == 4 * GIB


def test_ancestors_that_are_not_mounted_still_limit(sixteen):
    """Version 1 states the hierarchy's limit in the group's own statistics."""
    host = detect(
        sixteen(
            {
                **LARGE,
                "proc/self/cgroup": "3:memory:/",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": str(GIB),
                "sys/fs/cgroup/memory/memory.stat": f"hierarchical_memory_limit {3 * GIB}",
            }
        )
    )

    assert host.memory_budget_bytes == 2 * GIB


@pytest.mark.parametrize("text", ["", "garbage", "-5", "1e9", "8G"])
def test_an_odd_limit_is_none_and_is_said(text, sixteen):
    """Odd files never raise; MemAvailable remains."""
    host = detect(sixteen({"sys/fs/cgroup/memory.max": text}))

    assert (
        host.memory_budget_bytes,
        host.memory_bound_by,
        [notice.code for notice in host.notices],
    ) == (61440000000, "host", ["unreadable_file"])


def test_use_above_the_limit_leaves_nothing(sixteen):
    """Room is never negative."""
    files = {"sys/fs/cgroup/memory.max": "1000", "sys/fs/cgroup/memory.current": "5000"}

    assert detect(sixteen(files)).memory_budget_bytes == 0


def test_a_limit_above_the_hosts_memory_does_not_bind(sixteen):
    """The host's own memory is less."""
    host = detect(sixteen({"sys/fs/cgroup/memory.max": str(1 << 50)}))

    assert (host.memory_budget_bytes, host.memory_bound_by) == (61440000000, "host")


def test_kernels_without_memavailable(sixteen):
    """Free memory and page cache without shared memory stand in for it."""
    text = "MemTotal: 9000 kB\nMemFree: 1000 kB\nCached: 500 kB\nShmem: 200 kB"

    assert detect(sixteen({"proc/meminfo": text})).memory_budget_bytes == 1300 * 1024


def test_memory_nodes_that_the_mask_forbids_are_left_out(host_root):
    """Mems_allowed permits node 0 only."""
    assert detect(host_root("server-2s64c-cpuset16")).membind_nodes == (0,)


def test_the_cpusets_nodes_count_where_the_status_is_silent(sixteen):
    """cpuset.mems stands in for Mems_allowed."""
    node = "sys/devices/system/node/node"
    files = {f"{node}[0-1]/meminfo": "Node [0-1] MemTotal: 1000 kB", "sys/fs/cgroup/cpuset.mems.effective": "1"}

    assert detect(sixteen(files)).membind_nodes == (1,)
