"""Kinds of core on hybrid CPUs (C09)."""

import pytest

from tuner.hardware import detect
from tuner.hardware.core_classes import by_figure


@pytest.mark.parametrize("name", ["hybrid-pmu", "hybrid-capacity", "hybrid-frequency"])
def test_every_source_tells_the_same_classes(name, host_root):
    """C09: PMU files, capacities and frequencies give the same two kinds."""
    classes = {kind: (cpus[0], cpus[-1]) for kind, cpus in detect(host_root(name)).core_classes.items()}

    assert classes == {"performance": (0, 11), "efficiency": (12, 19)}


def test_classes_keep_to_the_mask(host_root):
    """A mask on efficiency cores leaves one kind, known by name, and no warning of a mix."""
    host = detect(host_root("hybrid-pmu"), affinity="12-19")

    assert (host.core_classes, host.notices) == ({"efficiency": (12, 13, 14, 15, 16, 17, 18, 19)}, ())


def test_classes_that_cannot_be_told_apart_are_said(host_root):
    """C09: nothing but unequal thread counts: one class, and a notice."""
    (notice,) = detect(host_root("hybrid-hidden")).notices

    assert notice.code == "core_classes_unknown"


def test_cpus_that_no_pmu_lists_stay_visible(plant):
    """An incomplete PMU list does not lose CPUs."""
    root = plant({"sys/devices/system/cpu/online": "0-2", "sys/devices/cpu_core/cpus": "0-1"})

    assert detect(root).core_classes == {"performance": (0, 1), "unclassified": (2,)}


def test_one_missing_figure_classifies_nothing(plant):
    """Frequencies of some CPUs only are no basis for kinds."""
    root = plant(
        {
            "sys/devices/system/cpu/online": "0-2",
            "sys/devices/system/cpu/cpu[0-1]/cpufreq/cpuinfo_max_freq": "[5000000,3000000]",
        }
    )

    assert detect(root).core_classes == {"uniform": (0, 1, 2)}


@pytest.mark.parametrize(
    ("figures", "classes"),
    [
        ({0: 1024, 1: 1024}, {"uniform": (0, 1)}),
        ({0: 5700, 1: 5250}, {"uniform": (0, 1)}),
        ({0: 1100, 1: 1000}, {"uniform": (0, 1)}),
        ({0: 1101, 1: 1000}, {"performance": (0,), "efficiency": (1,)}),
        ({0: 250, 1: 1024, 2: 760}, {"performance": (1,), "middle": (2,), "efficiency": (0,)}),
        ({0: 4, 1: 8, 2: 2, 3: 1}, {"performance": (1,), "middle_1": (0,), "middle_2": (2,), "efficiency": (3,)}),
    ],
)
def test_kinds_part_where_figures_leave_a_gap(figures, classes):
    """More than 10% parts kinds; favoured cores of one kind stay together."""
    assert classes == by_figure(figures)
