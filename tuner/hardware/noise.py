"""Reads what disturbs a timed block (steal, foreign CPU time, throttling, pressure, faults); it judges nothing.

Functions take the text of files, so saved /proc and /sys trees test them; what a kernel does not offer is None.
"""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tuner.hardware.throttling import CpuQuota, quota_of, throttled_s
from tuner.records.measurement import Telemetry

_BUSY_COLUMNS = (0, 1, 2, 5, 6)
_STEAL_COLUMN = 7
OWN_THROTTLING = 0.9
"""Share of the quota from which throttling is the configuration's own doing."""


@dataclass(frozen=True)
class CpuTicks:
    """Kernel ticks of a set of CPUs since boot: user, nice, system, irq and softirq are busy; steal may be absent."""

    busy: int
    steal: int | None


@dataclass(frozen=True)
class Snapshot:
    """Counters at one moment; differences of two are a block's telemetry.

    Attributes:
        now_s: Monotonic seconds.
        suspended_s: Seconds the machine has slept since boot.
        own_ticks: CPU ticks of the worker, all threads, user and system.
    """

    now_s: float
    suspended_s: float | None
    cpus: CpuTicks | None
    own_ticks: int | None
    major_faults: int | None
    involuntary_switches: int | None
    pressure_us: int | None
    throttled_s: float | None


def cpu_ticks(text: str, cpus: Iterable[int]) -> CpuTicks | None:
    """Sum the lines of `cpus` in /proc/stat (proc(5)); None where a CPU has no line."""
    rows = {}
    for line in text.splitlines():
        name, *rest = line.split() or [""]
        if name.startswith("cpu") and name[3:].isdigit():
            rows[int(name[3:])] = [int(word) for word in rest if word.isdigit()]
    wanted = [rows.get(cpu, []) for cpu in cpus] or list(rows.values())
    if not wanted or any(len(row) <= max(_BUSY_COLUMNS) for row in wanted):
        return None
    steal = sum(row[_STEAL_COLUMN] for row in wanted) if all(len(row) > _STEAL_COLUMN for row in wanted) else None
    return CpuTicks(sum(row[column] for row in wanted for column in _BUSY_COLUMNS), steal)


def process_ticks(text: str) -> tuple[int, int] | None:
    """Return (user + system ticks, major faults) from /proc/<pid>/stat; the name in it may hold spaces and brackets."""
    fields = text.rpartition(")")[2].split()
    try:
        return int(fields[11]) + int(fields[12]), int(fields[9])
    except (IndexError, ValueError):
        return None


def involuntary_switches(text: str) -> int | None:
    """Return ``nonvoluntary_ctxt_switches`` (main thread) from /proc/<pid>/status."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "nonvoluntary_ctxt_switches" and value.strip().isdigit():
            return int(value)
    return None


def pressure_some_us(text: str) -> int | None:
    """Return the total of the ``some`` line of a PSI file in microseconds."""
    for line in text.splitlines():
        if line.startswith("some "):
            total = line.rpartition("total=")[2]
            return int(total) if total.isdigit() else None
    return None


def read_text(path: Path) -> str:
    """Return the text of `path`, empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def slept_s() -> float | None:
    """Return the seconds this machine has been suspended since boot: CLOCK_BOOTTIME - CLOCK_MONOTONIC (Linux)."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


class TelemetryReader:
    """Reads snapshots of one worker and the CPUs it may use.

    Args:
        root: ``/`` or a saved tree.
        cpus: CPU ids of the worker's mask; empty means all in /proc/stat.
        pid: The worker.
        clock: Monotonic seconds.
        slept: Seconds suspended since boot, or None.
    """

    def __init__(
        self,
        root: Path,
        cpus: Iterable[int],
        pid: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        slept: Callable[[], float | None] = slept_s,
    ) -> None:
        self._proc = root / "proc"
        self._cpus = tuple(cpus)
        self._pid = pid
        self._clock = clock
        self._slept = slept
        self._tick_s = 1 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01
        self._quota: CpuQuota = quota_of(root, pid)

    def read(self) -> Snapshot:
        """Return the counters now."""
        own = process_ticks(read_text(self._proc / str(self._pid) / "stat"))
        return Snapshot(
            now_s=self._clock(),
            suspended_s=self._slept(),
            cpus=cpu_ticks(read_text(self._proc / "stat"), self._cpus),
            own_ticks=None if own is None else own[0],
            major_faults=None if own is None else own[1],
            involuntary_switches=involuntary_switches(read_text(self._proc / str(self._pid) / "status")),
            pressure_us=pressure_some_us(read_text(self._proc / "pressure" / "cpu")),
            throttled_s=throttled_s(self._quota),
        )

    def delta(self, before: Snapshot, after: Snapshot) -> Telemetry:
        """Return what happened between two snapshots."""
        wall_s = after.now_s - before.now_s
        own_s = _scaled(before.own_ticks, after.own_ticks, self._tick_s)
        steal_s = foreign_s = None
        if before.cpus is not None and after.cpus is not None:
            steal_s = _scaled(before.cpus.steal, after.cpus.steal, self._tick_s)
            if own_s is not None:
                foreign_s = (after.cpus.busy - before.cpus.busy) * self._tick_s - own_s
        capacity_s = max(wall_s, self._tick_s) * (len(self._cpus) or os.cpu_count() or 1)
        throttled = _scaled(before.throttled_s, after.throttled_s, 1.0)
        pressure = _scaled(before.pressure_us, after.pressure_us, 1e-6)
        return Telemetry(
            wall_s=wall_s,
            steal_ratio=None if steal_s is None else max(0.0, steal_s) / capacity_s,
            # One tick is the rounding of the kernel's own counters.
            foreign_ratio=None if foreign_s is None else max(0.0, foreign_s - self._tick_s) / capacity_s,
            throttled_s=None if throttled is None else max(0.0, throttled),
            own_throttling=self._is_own(throttled, own_s, wall_s),
            major_faults=_difference(before.major_faults, after.major_faults),
            involuntary_switches=_difference(before.involuntary_switches, after.involuntary_switches),
            pressure_some_s=None if pressure is None else max(0.0, pressure),
            suspended_s=_scaled(before.suspended_s, after.suspended_s, 1.0),
        )

    def _is_own(self, throttled: float | None, own_s: float | None, wall_s: float) -> bool | None:
        """Say whether the worker itself used the quota up; None without throttling or quota."""
        if not throttled or own_s is None or self._quota.cpus is None:
            return None
        return own_s >= OWN_THROTTLING * self._quota.cpus * wall_s


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)


def _scaled(before: float | None, after: float | None, unit: float) -> float | None:
    return None if before is None or after is None else (after - before) * unit
