"""Sockets, dies, physical cores and caches from sysfs; memory nodes are another matter, and so are kinds of core.

Source: Linux ``admin-guide/cputopology.rst`` and ``ABI/testing/sysfs-devices-system-cpu``.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from tuner.hardware.lists import format_cpu_list, parse_cpu_list
from tuner.hardware.tree import Tree
from tuner.records.hardware import Cache, Package

_CPU = "sys/devices/system/cpu/cpu"
_SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

CoreKey = tuple[int | str, ...]


class Topology(NamedTuple):
    """The machine's CPUs: sockets, and the core (an opaque key) of every online CPU; None where unknown."""

    packages: tuple[Package, ...]
    cores: dict[int, CoreKey | None]

    def siblings(self, cpus: Iterable[int]) -> tuple[tuple[int, ...], ...]:
        """Return `cpus` by physical core, ordered by first CPU; a CPU of unknown core stands alone."""
        groups: dict[CoreKey, list[int]] = {}
        for cpu in sorted(cpus):
            groups.setdefault(self.cores.get(cpu) or ("cpu", cpu), []).append(cpu)
        return tuple(tuple(group) for group in groups.values())

    @property
    def smt(self) -> bool | None:
        """Whether any core runs several online threads; None if no core is known."""
        if not any(self.cores.values()):
            return None
        return any(len(group) > 1 for group in self.siblings(self.cores))


def read_topology(tree: Tree, online: tuple[int, ...], allowed: tuple[int, ...]) -> Topology:
    """Return the topology of the online CPUs; CPUs without one are counted as cores, with a notice.

    A core is a distinct (package, die, cluster, core id): core ids repeat across sockets, across dies on some x86 and
    across clusters on some Arm systems.
    """
    packages: dict[int, dict[int, list[int]]] = {}
    cores: dict[int, CoreKey | None] = {}
    for cpu in online:
        package = max(tree.integer(f"{_CPU}{cpu}/topology/physical_package_id") or 0, 0)
        die = max(tree.integer(f"{_CPU}{cpu}/topology/die_id") or 0, 0)
        packages.setdefault(package, {}).setdefault(die, []).append(cpu)
        cores[cpu] = _core_key(tree, cpu, package, die)
    unknown = [cpu for cpu in allowed if cores[cpu] is None]
    if unknown:
        tree.note(
            "topology_unknown",
            f"sysfs names no core for CPUs {format_cpu_list(unknown)}; each is counted as a physical core",
            "mount /sys into the container, or limit threads by hand with --fix if these are hyperthreads",
        )
    return Topology(
        tuple(
            Package(
                id=package,
                cpus=tuple(sorted(cpu for die in dies.values() for cpu in die)),
                dies=tuple(tuple(dies[die]) for die in sorted(dies)),
            )
            for package, dies in sorted(packages.items())
        ),
        cores,
    )


def _core_key(tree: Tree, cpu: int, package: int, die: int) -> CoreKey | None:
    """Return what tells this CPU's core from all others: ids, else its sibling list."""
    folder = f"{_CPU}{cpu}/topology"
    core = tree.integer(f"{folder}/core_id")
    if core is not None and core >= 0:
        return (package, die, max(tree.integer(f"{folder}/cluster_id") or 0, 0), core)
    for name in ("core_cpus_list", "thread_siblings_list"):
        text = tree.read(f"{folder}/{name}")
        if text:
            return (package, die, text)
    return None


def note_invented(tree: Tree, topology: Topology, *, virtualized: bool | None) -> None:
    """Say so when a hypervisor shows every CPU as a socket of its own."""
    n_packages, n_cpus = len(topology.packages), len(topology.cores)
    if virtualized and n_packages > 1 and n_packages == n_cpus:
        tree.note(
            "topology_invented",
            f"the hypervisor shows {n_cpus} CPUs as {n_packages} sockets; which share a core is unknown",
            "thread counts are searched by measurement; give the machine's real topology to the guest if you can",
        )


def read_caches(tree: Tree, allowed: tuple[int, ...]) -> tuple[Cache, ...]:
    """Return data and unified caches with the allowed CPUs that share each, ordered by level, then by CPU."""
    found: dict[tuple[int, str, tuple[int, ...]], Cache] = {}
    seen: dict[str, set[int]] = {}
    for cpu in allowed:
        for index in tree.children(f"{_CPU}{cpu}/cache"):
            if not index.startswith("index") or cpu in seen.setdefault(index, set()):
                continue
            cache = _read_cache(tree, f"{_CPU}{cpu}/cache/{index}", cpu, allowed)
            if cache is not None:
                seen[index].update(cache.cpus)
                found.setdefault((cache.level, cache.kind, cache.cpus), cache)
    return tuple(found[key] for key in sorted(found))


def _read_cache(tree: Tree, folder: str, cpu: int, allowed: tuple[int, ...]) -> Cache | None:
    """Return one cache; None for an instruction cache or one without a level."""
    kind = (tree.read(f"{folder}/type") or "").lower()
    level = tree.integer(f"{folder}/level") if kind in {"data", "unified"} else None
    if level is None:
        return None
    try:
        shared = set(parse_cpu_list(tree.read(f"{folder}/shared_cpu_list") or "")) | {cpu}
    except ValueError:
        shared = {cpu}
    return Cache(
        level=level,
        kind="data" if kind == "data" else "unified",
        size_bytes=parse_size(tree.read(f"{folder}/size") or ""),
        cpus=tuple(sorted(shared.intersection(allowed))),
    )


def parse_size(text: str) -> int | None:
    """Return bytes of ``48K``, ``2M`` or plain bytes; None if it is no size."""
    match = re.fullmatch(r"(\d{1,12})([KMG]?)B?", text, re.ASCII)
    return int(match[1]) * _SCALE[match[2]] if match else None
