"""Finding the control groups of a process: mounts, namespaces, hybrid and nested hierarchies."""

import pytest

from tuner.hardware.cgroups import ControlGroups, Membership, Mount, parse_memberships, parse_mounts
from tuner.hardware.tree import Tree


def chain_of(root, controller):
    """Return version and directories of a controller's chain."""
    chain = ControlGroups(Tree(root)).chain(controller)
    return None if chain is None else (chain.version, chain.directories)


def test_the_own_group_comes_first_then_every_ancestor(plant):
    """Version 2 from the process's group up to the mount."""
    root = plant({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/b/cpu.max": "max"})

    assert chain_of(root, "cpu") == (2, ("sys/fs/cgroup/a/b", "sys/fs/cgroup/a", "sys/fs/cgroup"))


def test_a_mount_that_shows_only_the_containers_own_group(plant):
    """Docker v1: the path of the host is the mount's root, so the group lies at the mount point."""
    root = plant(
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/docker/ab12",
            "proc/self/mountinfo": "30 24 0:26 /docker/ab12 /sys/fs/cgroup/cpu,cpuacct ro - cgroup c rw,cpu,cpuacct",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1",
        }
    )

    assert chain_of(root, "cpu") == (1, ("sys/fs/cgroup/cpu,cpuacct",))


def test_a_path_below_the_mounts_root(plant):
    """What lies below the shown root keeps its own chain."""
    root = plant(
        {
            "proc/self/cgroup": "4:cpu:/docker/ab12/inner",
            "proc/self/mountinfo": "30 24 0:26 /docker/ab12 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu",
            "sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us": "-1",
        }
    )

    assert chain_of(root, "cpu") == (1, ("sys/fs/cgroup/cpu/inner", "sys/fs/cgroup/cpu"))


def test_a_path_outside_the_namespace_falls_back_to_the_mount(plant):
    """A path that leads out (/../x) cannot be followed; the mount's own limits still count."""
    root = plant({"proc/self/cgroup": "0::/../x", "sys/fs/cgroup/cpu.max": "max"})

    assert chain_of(root, "cpu") == (2, ("sys/fs/cgroup",))


def test_a_path_that_does_not_exist_keeps_the_ancestors_that_do(plant):
    """A private namespace with the host's path: what exists is read."""
    root = plant({"proc/self/cgroup": "0::/kubepods/pod1", "sys/fs/cgroup/cpu.max": "max"})

    assert chain_of(root, "cpu") == (2, ("sys/fs/cgroup",))


def test_of_two_mounts_the_one_with_more_ancestors_is_used(plant):
    """A bind mount of the own group does not hide the whole hierarchy."""
    root = plant(
        {
            "proc/self/cgroup": "0::/a",
            "proc/self/mountinfo": "1 0 0:1 /a /own rw - cgroup2 c rw\n2 0 0:1 / /sys/fs/cgroup rw - cgroup2 c rw",
            "own/cpu.max": "max",
            "sys/fs/cgroup/a/cpu.max": "max",
        }
    )

    assert chain_of(root, "cpu") == (2, ("sys/fs/cgroup/a", "sys/fs/cgroup"))


def test_a_mount_table_of_other_places_falls_back_to_the_usual_one(plant):
    """Mount points that do not exist below the root do not count."""
    root = plant(
        {
            "proc/self/cgroup": "0::/",
            "proc/self/mountinfo": "2 0 0:1 / /elsewhere rw - cgroup2 c rw",
            "sys/fs/cgroup/cpu.max": "max",
        }
    )

    assert chain_of(root, "cpu") == (2, ("sys/fs/cgroup",))


def test_controllers_resolve_one_by_one(plant):
    """Hybrid: cpu in version 1, memory in version 2."""
    root = plant(
        {
            "proc/self/cgroup": "3:cpu,cpuacct:/a\n0::/b",
            "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/unified/b/memory.max": "max",
        }
    )

    assert [
        (version, directories[0]) for version, directories in (chain_of(root, "cpu"), chain_of(root, "memory"))
    ] == [(1, "sys/fs/cgroup/cpu,cpuacct/a"), (2, "sys/fs/cgroup/unified/b")]


def test_no_membership_file_reads_the_mount_itself(plant):
    """Without /proc/self/cgroup the limits at the mount are the best there is."""
    root = plant({"sys/fs/cgroup/cpu.max": "max"})

    assert chain_of(root, "cpu") == (2, ("sys/fs/cgroup",))


def test_no_control_groups_at_all(plant):
    """Nothing mounted: no chain and no layout."""
    root = plant({"proc/self/cgroup": "0::/"})

    assert (chain_of(root, "cpu"), ControlGroups(Tree(root)).layout) == (None, None)


def test_memberships_read_colons_in_paths_and_skip_garbage():
    """Only the first two colons part a line."""
    text = "4:cpu,cpuacct:/a:b\n0::/c/\nnonsense\n1:name=systemd:relative"

    expected = (Membership(frozenset({"cpu", "cpuacct"}), "/a:b"), Membership(frozenset(), "/c"))

    assert expected == parse_memberships(text)


def test_mounts_read_escapes_and_optional_fields():
    """A space in a mount point is written in octal; optional fields stand before the dash."""
    text = "31 2 0:2 /x\\040y /mnt/c\\040g rw shared:3 - cgroup2 cgroup2 rw\n5 2 0:3 / /proc rw - proc proc rw"

    assert (Mount(2, frozenset(), "/x y", "mnt/c g"),) == parse_mounts(text)


@pytest.mark.parametrize("text", ["", "\x00", "a b c - cgroup", "1 2 3 4 5 - cgroup2", " - cgroup2 a b"])
def test_odd_mount_tables_hold_no_mounts(text):
    """Lines that are too short are left out."""
    assert parse_mounts(text) == ()
