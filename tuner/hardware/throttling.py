"""Reads CPU throttling of a process's control groups, version 1, 2 and hybrid; it changes and judges nothing."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_V1_NAMES = ("cpu,cpuacct", "cpuacct,cpu", "cpu")


@dataclass(frozen=True)
class CpuQuota:
    """The control groups of a process that may throttle it.

    Attributes:
        directories: From the process's own group up to the root; empty where there is none.
        cpus: Least quota of them in CPUs, None without one.
    """

    directories: tuple[Path, ...]
    cpus: float | None


def quota_of(root: Path, pid: int) -> CpuQuota:
    """Find the hierarchy that has the cpu controller: a v1 line with ``cpu`` wins over ``0::`` (hybrid hosts)."""
    try:
        lines = (root / "proc" / str(pid) / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    mount = root / "sys" / "fs" / "cgroup"
    directories: tuple[Path, ...] = ()
    for line in sorted(lines, reverse=True):
        number, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        if "cpu" in controllers.split(","):
            base = next((mount / name for name in _V1_NAMES if (mount / name).is_dir()), mount / "cpu")
            directories = _upwards(base, path)
            break
        if number == "0" and not controllers:
            directories = _upwards(mount, path)
    quotas = [quota for quota in map(_quota_cpus, directories) if quota is not None]
    return CpuQuota(directories, min(quotas, default=None))


def throttled_s(quota: CpuQuota) -> float | None:
    """Return seconds of throttling so far of the group that was throttled most, None where no file says it."""
    seen = [value for value in map(_throttled, quota.directories) if value is not None]
    return max(seen, default=None)


def throttled_from(text: str) -> float | None:
    """Return throttled seconds of a cpu.stat file: ``throttled_usec`` (v2) or ``throttled_time`` in ns (v1)."""
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if value.strip().isdigit() and name in {"throttled_usec", "throttled_time"}:
            return int(value) * (1e-6 if name == "throttled_usec" else 1e-9)
    return None


def _upwards(base: Path, path: str) -> tuple[Path, ...]:
    """Return the existing directories from `path` below `base` up to `base`; a path outside the mount is its root."""
    parts = [part for part in PurePosixPath(path).parts if part not in {"/", ".."}]
    chain = [base.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]
    return tuple(directory for directory in chain if directory.is_dir())


def _quota_cpus(directory: Path) -> float | None:
    v2 = _words(directory / "cpu.max")
    if len(v2) == 2 and all(word.isdigit() for word in v2) and int(v2[1]) > 0:  # noqa: PLR2004 - "quota period"
        return int(v2[0]) / int(v2[1])
    quota, period = _words(directory / "cpu.cfs_quota_us"), _words(directory / "cpu.cfs_period_us")
    if quota and period and quota[0].isdigit() and period[0].isdigit() and int(period[0]) > 0:
        return int(quota[0]) / int(period[0])
    return None


def _throttled(directory: Path) -> float | None:
    try:
        return throttled_from((directory / "cpu.stat").read_text(encoding="utf-8"))
    except OSError:
        return None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split()
    except OSError:
        return []
