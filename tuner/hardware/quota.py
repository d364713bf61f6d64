"""CPU time and CPU sets that control groups grant; it does not combine them with the mask.

Source: Linux ``scheduler/sched-bwc.rst`` (quota per period), ``admin-guide/cgroup-v2.rst`` (``cpu.max``, ``cpuset``).
"""

import re

from tuner.hardware.cgroups import Chain
from tuner.hardware.tree import Tree

_DEFAULT_PERIOD_US = 100_000
_INTEGER = re.compile(r"\d{1,18}", re.ASCII)


def quota_cpus(tree: Tree, chain: Chain | None) -> float | None:
    """Return the smallest quota of the chain in CPUs; None without one. Odd files become notices."""
    quotas = []
    for directory in chain.directories if chain else ():
        name = f"{directory}/cpu.max" if chain and chain.version == 2 else f"{directory}/cpu.cfs_quota_us"  # noqa: PLR2004
        text = tree.read(name)
        if text is None:
            continue
        if name.endswith("_us"):
            text = f"{text} {tree.read(f'{directory}/cpu.cfs_period_us') or ''}" if text not in {"", "-1"} else text
        try:
            quota = parse_quota(text)
        except ValueError as error:
            tree.odd_file(name, f"{error}, taken as no CPU quota")
            continue
        if quota is not None:
            quotas.append(quota)
    return min(quotas, default=None)


def parse_quota(text: str) -> float | None:
    """Return CPUs of ``QUOTA [PERIOD]`` in microseconds; None for ``max`` and ``-1`` (no limit).

    Raises:
        ValueError: Empty, not numbers, or a quota or period of zero.
    """
    words = text.split()
    if not words:
        raise ValueError("the file is empty")
    if words[0] in {"max", "-1"}:
        return None
    figures = [int(word) for word in words if _INTEGER.fullmatch(word)]
    if len(figures) != len(words) or len(words) > 2 or 0 in figures:  # noqa: PLR2004 - quota and period
        raise ValueError(f"{text[:40]!r} is not a quota and a period in microseconds")
    return figures[0] / (figures[1] if len(figures) > 1 else _DEFAULT_PERIOD_US)


def cpuset(tree: Tree, chain: Chain | None, what: str = "cpus") -> tuple[int, ...] | None:
    """Return the CPUs (or, with ``mems``, the memory nodes) of the cpuset chain; None where nothing says."""
    names = (
        (f"cpuset.{what}.effective", f"cpuset.{what}")
        if chain and chain.version == 2  # noqa: PLR2004 - a version
        else (f"cpuset.effective_{what}", f"cpuset.{what}")
    )
    allowed: set[int] | None = None
    for directory in chain.directories if chain else ():
        listed = next(filter(None, (tree.cpu_list(f"{directory}/{name}") for name in names)), None)
        if listed:
            allowed = set(listed) if allowed is None else allowed & set(listed)
    return tuple(sorted(allowed)) if allowed else None
