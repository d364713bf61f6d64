"""Facts of the running system that move results: kernel, frequencies, huge pages, hypervisor; it judges none."""

import re
from typing import NamedTuple

from tuner.hardware.tree import Tree

_CPU = "sys/devices/system/cpu"
_KHZ_PER_MHZ = 1000.0
_HYPERVISORS = re.compile(
    r"KVM|QEMU|VMware|VirtualBox|innotek|Xen|Virtual Machine|Amazon EC2|Google|OpenStack|Alibaba|Parallels|Bochs|BHYVE",
    re.IGNORECASE,
)


class SystemFacts(NamedTuple):
    """None where the system does not say."""

    kernel: str | None
    hypervisor: str | None
    virtualized: bool | None
    thp: str | None
    governor: str | None
    turbo: bool | None
    numa_balancing: bool | None
    clocksource: str | None
    max_mhz: float | None


def read_system(tree: Tree, allowed: tuple[int, ...], isa: tuple[str, ...]) -> SystemFacts:
    """Return the facts; `allowed` names the CPUs whose frequencies count, `isa` holds x86's hypervisor flag."""
    cpu = f"{_CPU}/cpu{allowed[0]}/cpufreq"
    frequencies = [tree.integer(f"{_CPU}/cpu{cpu}/cpufreq/cpuinfo_max_freq") for cpu in allowed]
    hypervisor = _hypervisor(tree)
    balancing = tree.integer("proc/sys/kernel/numa_balancing")
    return SystemFacts(
        kernel=tree.read("proc/sys/kernel/osrelease") or None,
        hypervisor=hypervisor or ("unnamed" if "hypervisor" in isa else None),
        virtualized=_is_virtualized(tree, hypervisor, isa),
        thp=selected(tree.read("sys/kernel/mm/transparent_hugepage/enabled")),
        governor=tree.read(f"{cpu}/scaling_governor") or None,
        turbo=_turbo(tree),
        numa_balancing=None if balancing is None else balancing > 0,
        clocksource=tree.read("sys/devices/system/clocksource/clocksource0/current_clocksource") or None,
        max_mhz=max((figure / _KHZ_PER_MHZ for figure in frequencies if figure), default=None),
    )


def selected(text: str | None) -> str | None:
    """Return the word in brackets of a file such as ``always [madvise] never``; None without one."""
    match = re.search(r"\[(\w+)\]", text or "")
    return match[1] if match else None


def _turbo(tree: Tree) -> bool | None:
    """Return whether frequencies above nominal are enabled."""
    no_turbo = tree.integer(f"{_CPU}/intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == 0
    boost = tree.integer(f"{_CPU}/cpufreq/boost")
    return None if boost is None else boost > 0


def _hypervisor(tree: Tree) -> str | None:
    """Return the hypervisor's name from sysfs, DMI or the device tree."""
    name = tree.read("sys/hypervisor/type")
    if name:
        return name
    product = tree.read("sys/class/dmi/id/product_name") or ""
    vendor = tree.read("sys/class/dmi/id/sys_vendor") or ""
    match = _HYPERVISORS.search(f"{vendor} {product}")
    if match and ".metal" not in product:
        return match[0]
    return (tree.read("proc/device-tree/hypervisor/compatible") or "").rstrip("\0") or None


def _is_virtualized(tree: Tree, hypervisor: str | None, isa: tuple[str, ...]) -> bool | None:
    """Return whether this is a guest; x86 says so by a flag, others by name only."""
    if hypervisor or "hypervisor" in isa:
        return True
    if "lm" in isa or tree.read("sys/class/dmi/id/sys_vendor"):
        return False
    return None
