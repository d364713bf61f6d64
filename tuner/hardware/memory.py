"""How much memory this process can take before a limit is met; it does not say which node holds it.

Source: Linux ``admin-guide/cgroup-v2.rst`` (``memory.max``, ``memory.high``, ``memory.stat``) and
``admin-guide/cgroup-v1/memory.rst``. Inactive file pages are left out of the use: the kernel drops them first.
"""

import re
from typing import Literal, NamedTuple

from tuner.hardware.cgroups import Chain
from tuner.hardware.tree import Tree

_KIB = 1024
_UNLIMITED_BYTES = 1 << 60
_MEMINFO = re.compile(r"(?:Node \d+ )?([\w()]+):\s+(\d{1,15})(?: kB)?", re.ASCII)
_LIMITS: dict[int, tuple[str, ...]] = {1: ("memory.limit_in_bytes",), 2: ("memory.max", "memory.high")}
_USE: dict[int, str] = {1: "memory.usage_in_bytes", 2: "memory.current"}


class Memory(NamedTuple):
    """Bytes; None where unknown."""

    total_bytes: int | None
    swap_bytes: int | None
    budget_bytes: int | None
    bound_by: Literal["host", "cgroup"] | None


def read_memory(tree: Tree, chain: Chain | None) -> Memory:
    """Return the memory budget: the least of MemAvailable and the room in each control group, never negative."""
    text = tree.read("proc/meminfo")
    figures = meminfo_bytes(text or "")
    total, available = figures.get("MemTotal"), _available(figures)
    if available is None and tree.is_live:
        total, available = _ask_system()
    room = cgroup_room_bytes(tree, chain)
    if available is None and room is None:
        tree.note("memory_unknown", "neither /proc/meminfo nor a control group tells the memory", "mount /proc")
        return Memory(total, figures.get("SwapTotal"), None, None)
    if room is not None and (available is None or room < available):
        return Memory(total, figures.get("SwapTotal"), max(room, 0), "cgroup")
    return Memory(total, figures.get("SwapTotal"), available, "host")


def meminfo_bytes(text: str) -> dict[str, int]:
    """Return the fields of a ``meminfo`` file (of the host or a node) in bytes."""
    matches = (_MEMINFO.fullmatch(line.strip()) for line in text.splitlines())
    return {match[1]: int(match[2]) * _KIB for match in matches if match}


def cgroup_room_bytes(tree: Tree, chain: Chain | None) -> int | None:
    """Return the least room (limit - use + inactive file pages) on the chain; None where nothing limits."""
    rooms: list[int] = []
    use = 0
    for depth, directory in enumerate(chain.directories if chain else ()):
        assert chain is not None
        statistics = _statistics(tree.read(f"{directory}/memory.stat") or "")
        current = tree.integer(f"{directory}/{_USE[chain.version]}")
        if current is not None:
            reclaimable = statistics.get("total_inactive_file", statistics.get("inactive_file", 0))
            use = max(current - reclaimable, 0)
        limits = [_limit(tree, f"{directory}/{name}") for name in _LIMITS[chain.version]]
        if depth == 0:
            limits.append(statistics.get("hierarchical_memory_limit"))
        rooms.extend(limit - use for limit in limits if limit is not None and limit < _UNLIMITED_BYTES)
    return min(rooms, default=None)


def _limit(tree: Tree, name: str) -> int | None:
    """Return a limit in bytes; None for no file, no limit, or (with a notice) no figure."""
    text = tree.read(name)
    if text is None or text in {"max", "-1"}:
        return None
    if not re.fullmatch(r"\d{1,20}", text, re.ASCII):
        tree.odd_file(name, f"{text[:40]!r} is not a number of bytes, taken as no limit")
        return None
    return int(text)


def _statistics(text: str) -> dict[str, int]:
    """Return the counters of a ``memory.stat`` file."""
    words = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and re.fullmatch(r"\d{1,20}", pair[1], re.ASCII)}  # noqa: PLR2004


def _available(figures: dict[str, int]) -> int | None:
    """Return MemAvailable, or what stood for it before Linux 3.14."""
    if "MemAvailable" in figures:
        return figures["MemAvailable"]
    if "MemFree" not in figures:
        return None
    return figures["MemFree"] + max(figures.get("Cached", 0) - figures.get("Shmem", 0), 0)


def _ask_system() -> tuple[int | None, int | None]:
    """Return total and available memory where there is no /proc (macOS, Windows)."""
    try:
        import psutil
    except ImportError:
        return None, None
    memory = psutil.virtual_memory()
    return int(memory.total), int(memory.available)
