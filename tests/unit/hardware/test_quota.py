"""CPU quotas: every odd form of the files (C01, C03, C04) and the whole chain."""

import pytest

from tuner.hardware import detect
from tuner.hardware.quota import parse_quota


def codes(host):
    """Return the notices' codes."""
    return [notice.code for notice in host.notices]


@pytest.mark.parametrize(
    ("text", "quota", "budget", "notices"),
    [
        ("", None, 16, ["unreadable_file"]),
        ("max", None, 16, []),
        ("max 100000", None, 16, []),
        ("765000 100000", 7.65, 7, []),
        ("50000 100000", 0.5, 1, ["quota_below_one"]),
        ("garbage", None, 16, ["unreadable_file"]),
        ("200000", 2.0, 2, []),
        ("200000 0", None, 16, ["unreadable_file"]),
        ("0 100000", None, 16, ["unreadable_file"]),
        ("-5 100000", None, 16, ["unreadable_file"]),
        ("1e5 100000", None, 16, ["unreadable_file"]),
        ("nan 100000", None, 16, ["unreadable_file"]),
        ("100000 100000 7", None, 16, ["unreadable_file"]),
        ("9" * 400 + " 1", None, 16, ["unreadable_file"]),
        ("99999999999999999 1", 99999999999999999.0, 16, []),
    ],
)
def test_cpu_max_in_every_form(text, quota, budget, notices, sixteen):
    """C03: no form of cpu.max raises; garbage is no limit and is said, less than one CPU is said."""
    host = detect(sixteen({"sys/fs/cgroup/cpu.max": text}))

    assert (quota, budget, notices) == (host.quota_cpus, host.cpu_budget, codes(host))


def test_quota_bounds_a_container_on_a_large_host(sixteen):
    """C01: 16 online, 16 allowed, a quota of two: two CPUs, bound by the quota."""
    host = detect(sixteen({"sys/fs/cgroup/cpu.max": "200000 100000"}))

    assert (
        len(host.online_cpus),
        len(host.allowed_cpus),
        host.quota_cpus,
        host.cpu_budget,
        host.bound_by,
    ) == (16, 16, 2.0, 2, "quota")


def test_the_first_limit_that_attains_the_budget_is_named(sixteen):
    """Mask and quota of four both attain the minimum: affinity comes first."""
    host = detect(sixteen({"sys/fs/cgroup/cpu.max": "400000 100000"}), affinity="0-3")

    assert (host.cpu_budget, host.bound_by) == (4, "affinity")


def test_bytes_that_are_no_text_are_no_limit(sixteen):
    """A binary file is garbage, not an exception."""
    root = sixteen({})
    (root / "sys/fs/cgroup/cpu.max").write_bytes(b"\xff\xfe\x00\x01")

    assert None is detect(root).quota_cpus


def test_a_directory_in_place_of_a_file_is_no_limit(sixteen):
    """A name that cannot be read counts as missing."""
    root = sixteen({})
    (root / "sys/fs/cgroup/cpu.max").mkdir()

    assert None is detect(root).quota_cpus


def test_the_smallest_quota_of_the_chain_counts(sixteen):
    """An ancestor's tighter limit binds."""
    host = detect(
        sixteen(
            {
                "proc/self/cgroup": "0::/a/b",
                "sys/fs/cgroup/a/cpu.max": "300000 100000",
                "sys/fs/cgroup/a/b/cpu.max": "800000 100000",
            }
        )
    )

    assert host.quota_cpus == 3.0


def test_version_one_without_a_limit_is_minus_one(sixteen):
    """-1 means none, with no notice."""
    host = detect(
        sixteen(
            {
                "proc/self/cgroup": "1:cpu:/a\n0::/",
                "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000",
            }
        )
    )

    assert (host.quota_cpus, host.cpu_budget, codes(host)) == (None, 16, [])


def test_hybrid_finds_the_hierarchy_with_the_cpu_controller(sixteen):
    """C04: a 0:: line does not make it version 2; the v1 group's 1.5 CPUs give a budget of one."""
    host = detect(
        sixteen(
            {
                "proc/self/cgroup": "1:cpu:/a\n0::/",
                "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "150000",
                "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000",
                "sys/fs/cgroup/unified/cgroup.controllers": "",
            }
        )
    )

    assert (host.quota_cpus, host.cpu_budget, host.cgroup_version, host.cgroup_layout) == (1.5, 1, 1, "hybrid")


def test_a_missing_period_is_the_kernels_default(sixteen):
    """Version 1 without a period file: 100 ms."""
    host = detect(sixteen({"proc/self/cgroup": "1:cpu:/", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "250000"}))

    assert host.quota_cpus == 2.5


def test_a_quota_reads_from_text():
    """The reader is a function on text."""
    assert parse_quota("150000 100000\n") == 1.5


def test_seven_and_a_bit_is_never_rounded_up(sixteen):
    """C03: 7.99 CPUs run seven threads, eight would be throttled."""
    assert detect(sixteen({"sys/fs/cgroup/cpu.max": "799000 100000"})).cpu_budget == 7
