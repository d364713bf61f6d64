"""Cores, sockets, dies and caches (C07, C10)."""

import pytest

from tuner.hardware import detect
from tuner.hardware.topology import parse_size

CPU = "sys/devices/system/cpu"


def test_core_ids_that_repeat_on_the_second_socket(plant):
    """C07: two packages with core ids 0..13 each are 28 cores."""
    root = plant(
        {
            f"{CPU}/online": "0-27",
            f"{CPU}/cpu[0-13]/topology/physical_package_id": "0",
            f"{CPU}/cpu[14-27]/topology/physical_package_id": "1",
            f"{CPU}/cpu[0-27]/topology/core_id": "[0-13,0-13]",
        }
    )

    assert detect(root).n_physical_cores == 28


def test_core_ids_that_repeat_on_the_second_die(plant):
    """Dies of one package are kept apart."""
    root = plant(
        {
            f"{CPU}/online": "0-3",
            f"{CPU}/cpu[0-3]/topology/physical_package_id": "0",
            f"{CPU}/cpu[0-3]/topology/die_id": "[0,0,1,1]",
            f"{CPU}/cpu[0-3]/topology/core_id": "[0,1,0,1]",
        }
    )
    host = detect(root)

    assert (host.n_physical_cores, host.packages[0].dies) == (4, ((0, 1), (2, 3)))


def test_core_ids_that_repeat_in_the_second_cluster(plant):
    """Arm numbers cores within a cluster on some systems."""
    root = plant(
        {
            f"{CPU}/online": "0-3",
            f"{CPU}/cpu[0-3]/topology/physical_package_id": "0",
            f"{CPU}/cpu[0-3]/topology/cluster_id": "[0,0,1,1]",
            f"{CPU}/cpu[0-3]/topology/core_id": "[0,1,0,1]",
        }
    )

    assert detect(root).n_physical_cores == 4


def test_arm_cpuinfo_without_core_ids_counts_logical_cpus(plant):
    """C07: no sysfs topology either: logical CPUs, a notice, and SMT unknown."""
    host = detect(plant({"proc/cpuinfo": "processor : 0\nFeatures : asimd\n\nprocessor : 1\nFeatures : asimd\n"}))

    assert (
        host.physical_cores,
        host.smt,
        "topology_unknown" in {notice.code for notice in host.notices},
    ) == (((0,), (1,)), None, True)


def test_sibling_lists_stand_in_for_core_ids(plant):
    """Core ids of -1 mean unknown; the sibling lists still tell."""
    root = plant(
        {
            f"{CPU}/online": "0-3",
            f"{CPU}/cpu[0-3]/topology/core_id": "-1",
            f"{CPU}/cpu[0-3]/topology/thread_siblings_list": "[0,1,0,1],[2,3,2,3]",
        }
    )

    assert detect(root).physical_cores == ((0, 2), (1, 3))


def test_siblings_outside_the_mask_do_not_count(host_root):
    """One thread a core allowed: as many cores as CPUs, though the machine has SMT."""
    host = detect(host_root("server-2s64c"), affinity="0-15")

    assert (host.n_physical_cores, host.smt) == (16, True)


def test_a_garbage_topology_file_never_raises(plant):
    """Unreadable ids leave the CPU alone as a core."""
    root = plant({f"{CPU}/online": "0-1", f"{CPU}/cpu[0-1]/topology/core_id": "garbage"})

    assert detect(root).physical_cores == ((0,), (1,))


def test_nodes_are_not_sockets(host_root):
    """C10: two sockets with eight nodes; neither number stands for the other."""
    host = detect(host_root("xeon-snc4"))

    assert (host.n_packages, host.n_cpu_nodes) == (2, 8)


def test_a_garbage_cache_folder_is_left_out(plant):
    """A cache without a level or with a broken list never raises."""
    root = plant(
        {
            f"{CPU}/online": "0",
            f"{CPU}/cpu0/cache/index0/type": "Data",
            f"{CPU}/cpu0/cache/index1/type": "Unified",
            f"{CPU}/cpu0/cache/index1/level": "2",
            f"{CPU}/cpu0/cache/index1/shared_cpu_list": "x-y",
            f"{CPU}/cpu0/cache/index1/size": "huge",
        }
    )

    assert [(cache.level, cache.kind, cache.size_bytes, cache.cpus) for cache in detect(root).caches] == [
        (2, "unified", None, (0,))
    ]


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("48K", 49152), ("2M", 2097152), ("1G", 1073741824), ("64", 64), ("", None), ("K", None)]
)
def test_sizes_are_read(text, size_bytes):
    """The kernel writes powers of two with a letter."""
    assert size_bytes == parse_size(text)
