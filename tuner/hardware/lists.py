"""The kernel's CPU-list syntax (``0-3,8,16-31:2/4``), both ways; it knows nothing of CPUs."""

import re
from collections.abc import Iterable

_MOST = 1 << 16
_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9})/(\d{1,9}))?)?", re.ASCII)


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Return the ids of `text`, sorted and each once; an empty text is no ids.

    Source: Linux ``Documentation/admin-guide/kernel-parameters.rst``, "cpu lists" (``first-last:used/group``).

    Raises:
        ValueError: Not a CPU list, a range that runs backwards, or an id of 65536 or more.
    """
    found: set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part.strip()!r} is not a CPU or a range of CPUs")
        first = int(match[1])
        last = int(match[2] or first)
        used, group = int(match[3] or 1), int(match[4] or 1)
        if last < first or last >= _MOST or not 0 < used <= group:
            raise ValueError(f"{part.strip()!r} is not a range of CPUs below {_MOST}")
        found.update(cpu for cpu in range(first, last + 1) if (cpu - first) % group < used)
    return tuple(sorted(found))


def format_cpu_list(cpus: Iterable[int]) -> str:
    """Return the shortest list text without strides, ``0-3,8``; empty for no CPUs."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)
