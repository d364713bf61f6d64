"""Puts together what one process may use of its host; every reading lives in a module of its own."""

import os
import shutil
import sys
from pathlib import Path
from typing import Literal

from tuner.errors import UsageError
from tuner.hardware import libraries
from tuner.hardware.cgroups import ControlGroups
from tuner.hardware.core_classes import read_core_classes
from tuner.hardware.cpuinfo import cpu_model, isa_flags, parse_cpuinfo
from tuner.hardware.masks import read_masks
from tuner.hardware.memory import read_memory
from tuner.hardware.memory_policy import describe, probe_memory_policy
from tuner.hardware.nodes import note_split_sockets, read_nodes
from tuner.hardware.quota import cpuset, quota_cpus
from tuner.hardware.system import read_system
from tuner.hardware.topology import note_invented, read_caches, read_topology
from tuner.hardware.tree import Tree
from tuner.records.hardware import Host


def detect(root: Path = Path("/"), affinity: str | None = None) -> Host:
    """Return what this process may use of the host, from ``/proc`` and ``/sys`` below `root`.

    Files that are missing or odd never raise; they become notices and facts of None.

    Args:
        root: ``/`` also asks the system for the affinity mask; elsewhere the mask is that of ``proc/self/status``.
        affinity: A CPU list that stands in for the mask.

    Raises:
        UsageError: `root` is no directory, or `affinity` holds no usable CPU.
    """
    if not root.is_dir():
        raise UsageError(f"--root {root}: no such directory; give one that holds proc and sys")
    tree = Tree(root)
    groups = ControlGroups(tree)
    cpu_chain, set_chain = groups.chain("cpu"), groups.chain("cpuset")
    text = parse_cpuinfo(tree.read("proc/cpuinfo") or "")
    online, allowed, is_pinning_available = read_masks(tree, text, cpuset(tree, set_chain), affinity)
    quota = quota_cpus(tree, cpu_chain)
    _note_limits(tree, quota, has_groups=cpu_chain is not None)
    topology = read_topology(tree, online, allowed)
    isa = isa_flags(text, allowed)
    if not isa:
        tree.note("isa_unknown", "/proc/cpuinfo lists no CPU flags; reduced precisions are left out", "mount /proc")
    model = cpu_model(text, allowed)
    system = read_system(tree, allowed, isa)
    note_invented(tree, topology, virtualized=system.virtualized)
    memory = read_memory(tree, groups.chain("memory"))
    nodes = read_nodes(tree, online, allowed, cpuset(tree, set_chain, "mems"), memory.total_bytes)
    note_split_sockets(tree, topology.packages, nodes.all)
    preloadable = libraries.installed(root)
    sibling_counts = [len(siblings) for siblings in topology.siblings(online)]
    budget, bound_by = cpu_budget(len(online), len(allowed), quota)
    return Host(
        online_cpus=online,
        allowed_cpus=allowed,
        physical_cores=topology.siblings(allowed),
        quota_cpus=quota,
        cpu_budget=budget,
        bound_by=bound_by,
        packages=topology.packages,
        numa_nodes=nodes.all,
        cpu_nodes=nodes.with_cpus,
        membind_nodes=nodes.with_memory,
        core_classes=read_core_classes(tree, allowed, sibling_counts, virtualized=system.virtualized),
        caches=read_caches(tree, allowed),
        isa=isa,
        memory_budget_bytes=memory.budget_bytes,
        memory_bound_by=memory.bound_by,
        smt=topology.smt,
        cgroup_version=cpu_chain.version if cpu_chain else None,
        cgroup_layout=groups.layout,
        architecture=model.architecture or _machine(tree),
        vendor=model.vendor,
        cpu_model=model.name,
        cpu_family=model.family,
        cpu_model_number=model.number,
        stepping=model.stepping,
        microcode=model.microcode,
        memory_total_bytes=memory.total_bytes,
        swap_total_bytes=memory.swap_bytes,
        is_pinning_available=is_pinning_available,
        is_memory_policy_permitted=_probe(tree),
        allocators=tuple(name for name in libraries.ALLOCATORS if name in preloadable),
        openmp_runtimes=tuple(name for name in libraries.OPENMP_RUNTIMES if name in preloadable),
        has_compiler=_has_compiler() if tree.is_live else None,
        notices=tuple(tree.notices),
        **system._asdict(),
    ).with_fingerprint()


def cpu_budget(
    n_online: int, n_allowed: int, quota: float | None
) -> tuple[int, Literal["online", "affinity", "quota"]]:
    """Return the CPUs to plan for, at least one, and the first limit that attains them."""
    n_quota = n_online if quota is None else max(1, int(quota))
    budget = max(1, min(n_online, n_allowed, n_quota))
    if n_online == budget:
        return budget, "online"
    return budget, "affinity" if n_allowed == budget else "quota"


def _note_limits(tree: Tree, quota: float | None, *, has_groups: bool) -> None:
    """Note what is odd about the quota."""
    if quota is not None and quota < 1:
        tree.note(
            "quota_below_one",
            f"the quota is {quota:g} CPUs, less than one CPU: even one thread is throttled in every period",
            "raise the CPU limit to at least 1 (docker --cpus, resources.limits.cpu)",
        )
    if not has_groups:
        tree.note(
            "quota_unknown",
            "no control group holds the cpu controller here; a CPU quota, if there is one, cannot be seen",
            "mount /sys/fs/cgroup into the container if it runs under a CPU limit",
        )


def _probe(tree: Tree) -> bool | None:
    """Return whether memory may be bound; asked of the running system only."""
    if not tree.is_live:
        return None
    probe = probe_memory_policy()
    if probe.is_permitted is False:
        tree.note(
            "memory_policy_denied",
            f"{describe(probe)}; memory is not bound to nodes, CPUs still are",
            "docker run --cap-add SYS_NICE permits it",
        )
    return probe.is_permitted


def _has_compiler() -> bool:
    """Return whether a C++ compiler is where PyTorch looks for one: CXX, else the system's own."""
    named = os.environ.get("CXX", "").split() or ["clang++" if sys.platform == "darwin" else "g++"]
    return shutil.which(named[0]) is not None


def _machine(tree: Tree) -> str | None:
    """Return the architecture that the running system names."""
    return os.uname().machine if tree.is_live and hasattr(os, "uname") else None
