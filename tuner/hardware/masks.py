"""Which CPUs are online and which of them this process may run on; quotas are another matter."""

import os
from typing import NamedTuple

from tuner.errors import UsageError
from tuner.hardware.cpuinfo import CpuText
from tuner.hardware.lists import format_cpu_list, parse_cpu_list
from tuner.hardware.tree import Tree


class Masks(NamedTuple):
    """CPU ids, sorted; `allowed` is never empty."""

    online: tuple[int, ...]
    allowed: tuple[int, ...]
    is_pinning_available: bool


def read_masks(tree: Tree, text: CpuText, cpuset: tuple[int, ...] | None, affinity: str | None) -> Masks:
    """Return online CPUs and those that mask and cpuset leave.

    Raises:
        UsageError: `affinity` is no CPU list or holds no CPU that is online and in the cpuset.
    """
    mask, is_pinning_available = _mask(tree)
    online = _online(tree, text, mask)
    if tree.is_live and mask and not set(mask) & set(online):
        tree.note(
            "online_cpus_unknown",
            f"sysfs lists {format_cpu_list(online)} as online, yet this process runs on {format_cpu_list(mask)}",
            "the affinity mask is believed; check what is mounted over /sys/devices/system/cpu",
        )
        online = mask
    within = set(online) & set(cpuset) if cpuset else set(online)
    if not within:
        tree.note(
            "cpuset_ignored",
            f"the cpuset {format_cpu_list(cpuset or ())} holds none of the online CPUs {format_cpu_list(online)}",
            "check cpuset.cpus of this control group",
        )
        within = set(online)
    if affinity is not None:
        return Masks(online, _asked(affinity, within), is_pinning_available)
    allowed = within if mask is None else within & set(mask)
    if not allowed:
        tree.note(
            "affinity_ignored",
            f"the affinity mask {format_cpu_list(mask or ())} holds none of the CPUs {format_cpu_list(within)}",
            "give the CPUs with --affinity",
        )
        allowed = within
    return Masks(online, tuple(sorted(allowed)), is_pinning_available)


def _asked(affinity: str, within: set[int]) -> tuple[int, ...]:
    """Return the usable CPUs of the user's list."""
    try:
        listed = parse_cpu_list(affinity)
    except ValueError as error:
        raise UsageError(f"--affinity: {error}; write CPU ids such as 0-7,16") from None
    allowed = tuple(sorted(within & set(listed)))
    if not allowed:
        raise UsageError(
            f"--affinity {affinity}: none of these CPUs is usable here; usable are {format_cpu_list(within)}"
        )
    return allowed


def _mask(tree: Tree) -> tuple[tuple[int, ...] | None, bool]:
    """Return the affinity mask, None if nothing says, and whether masks can be set."""
    is_pinning_available = not tree.is_live or (hasattr(os, "sched_getaffinity") and hasattr(os, "sched_setaffinity"))
    if not is_pinning_available:
        tree.note(
            "pinning_unavailable",
            "this system lets no process choose its CPUs (no sched_setaffinity)",
            "placements are left out of the search; tune on Linux to pin",
        )
    if tree.is_live and is_pinning_available:
        try:
            return tuple(sorted(os.sched_getaffinity(0))), True
        except OSError as error:
            tree.note("affinity_unreadable", f"sched_getaffinity: {error}", "give the CPUs with --affinity")
    listed = status_field(tree.read("proc/self/status") or "", "Cpus_allowed_list")
    if listed is None:
        return None, is_pinning_available
    try:
        return parse_cpu_list(listed) or None, is_pinning_available
    except ValueError as error:
        tree.odd_file("proc/self/status", f"Cpus_allowed_list: {error}")
        return None, is_pinning_available


def _online(tree: Tree, text: CpuText, mask: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the online CPUs from sysfs, else /proc, else the mask, else what the system says."""
    online = tree.cpu_list("sys/devices/system/cpu/online")
    if not online:
        online = tuple(sorted(text.cpus)) or _stat_cpus(tree.read("proc/stat") or "")
    if not online:
        online = mask or tuple(range((os.cpu_count() or 1) if tree.is_live else 1))
        tree.note(
            "online_cpus_unknown",
            f"no file lists the online CPUs; {format_cpu_list(online)} is assumed",
            "mount /sys and /proc into the container",
        )
    return online


def _stat_cpus(text: str) -> tuple[int, ...]:
    """Return the CPUs that ``/proc/stat`` has a line for."""
    words = (line.split(maxsplit=1)[0] for line in text.splitlines() if line.startswith("cpu"))
    return tuple(sorted(int(word[3:]) for word in words if word[3:].isdigit()))


def status_field(text: str, name: str) -> str | None:
    """Return a field of ``/proc/self/status``; None if absent."""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return value.strip()
    return None
