"""Kinds of core on hybrid CPUs; it tells them apart, it does not choose.

The sources, best first: the PMU devices of x86 hybrids, ``cpu_capacity`` (Arm, newer x86), the highest frequency.
"""

from collections.abc import Iterable
from itertools import pairwise

from tuner.hardware.tree import Tree

UNIFORM, PERFORMANCE, EFFICIENCY = "uniform", "performance", "efficiency"
_GAP_RATIO = 1.10
"""Cores of one kind differ by up to 9% in frequency (Ryzen 9 7950X3D: 5.7 and 5.25 GHz); kinds by 20% and more."""
_PMU = {"cpu_core": PERFORMANCE, "cpu_atom": EFFICIENCY, "cpu_lowpower": "low_power"}


def read_core_classes(
    tree: Tree, allowed: tuple[int, ...], sibling_counts: Iterable[int], *, virtualized: bool | None
) -> dict[str, tuple[int, ...]]:
    """Return the allowed CPUs by kind of core, fastest kind first.

    Args:
        tree: Where to read.
        allowed: CPUs to divide.
        sibling_counts: Online threads of every core of the machine; unequal counts hint at kinds that differ.
        virtualized: On a guest, missing sources are usual and worth no notice.
    """
    classes = _by_pmu(tree, allowed)
    is_certain = is_known = bool(classes)
    for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        if len(classes) > 1:
            break
        figures = {cpu: tree.integer(f"sys/devices/system/cpu/cpu{cpu}/{name}") for cpu in allowed}
        known = {cpu: figure for cpu, figure in figures.items() if figure is not None and figure > 0}
        is_known = is_known or bool(known)
        if len(known) == len(allowed):
            classes = by_figure(known) if not classes or len(by_figure(known)) > 1 else classes
    is_uneven = not is_certain and len(set(sibling_counts)) > 1
    is_silent = not is_known and not virtualized and len(allowed) > 1
    if len(classes) < 2 and (is_uneven or is_silent):  # noqa: PLR2004 - one kind
        tree.note(
            "core_classes_unknown",
            "no file tells kinds of core apart"
            + (
                ", yet cores run unequal numbers of threads: performance and efficiency cores may be mixed"
                if is_uneven
                else ""
            ),
            "if this CPU mixes kinds of core, start the tool on one kind: taskset -c 0-7 autotune …",
        )
    if len(classes) > 1:
        tree.note(
            "core_classes_mixed",
            "the allowed CPUs are of unequal kinds: "
            + ", ".join(f"{len(cpus)} {name}" for name, cpus in classes.items()),
            "a step waits for its slowest thread; placements with one kind of core are searched too",
        )
    return classes or {UNIFORM: allowed}


def by_figure(figures: dict[int, int]) -> dict[str, tuple[int, ...]]:
    """Return CPUs divided where their figures (capacity or frequency) leave a gap of 10%."""
    ranked = sorted(set(figures.values()), reverse=True)
    floors = [lower for lower, upper in pairwise(sorted(ranked)) if upper > lower * _GAP_RATIO]
    floors = sorted({*floors, ranked[0]}, reverse=True)
    groups = [
        tuple(cpu for cpu in sorted(figures) if figures[cpu] <= top and (rest is None or figures[cpu] > rest))
        for top, rest in zip(floors, [*floors[1:], None], strict=True)
    ]
    return dict(zip(_names(len(groups)), groups, strict=True))


def _names(n_classes: int) -> list[str]:
    """Return names from the fastest kind to the slowest."""
    if n_classes == 1:
        return [UNIFORM]
    middle = ["middle"] if n_classes == 3 else [f"middle_{rank}" for rank in range(1, n_classes - 1)]  # noqa: PLR2004
    return [PERFORMANCE, *middle, EFFICIENCY]


def _by_pmu(tree: Tree, allowed: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the kinds that the performance-monitoring devices of an x86 hybrid list."""
    classes: dict[str, tuple[int, ...]] = {}
    left = set(allowed)
    for device, name in reversed(_PMU.items()):
        listed = tree.cpu_list(f"sys/devices/{device}/cpus") or tree.cpu_list(
            f"sys/bus/event_source/devices/{device}/cpus"
        )
        cpus = tuple(sorted(left.intersection(listed or ())))
        if cpus:
            classes[name] = cpus
            left -= set(cpus)
    if classes and left:
        classes["unclassified"] = tuple(sorted(left))
    order = [*_PMU.values(), "unclassified"]
    return {name: classes[name] for name in order if name in classes}
