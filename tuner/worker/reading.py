"""Reads back what is in force in this process: masks of all threads, mapped libraries, its age; changes nothing."""

import os
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

KNOWN_LIBRARIES = re.compile(
    r"/lib(?P<name>gomp|iomp5|omp|tbb|tbbmalloc_proxy|mkl_rt|openblas|jemalloc|tcmalloc|tcmalloc_minimal|mimalloc|"
    r"onnxruntime|onnxruntime_providers_shared|openvino|openvino_intel_cpu_plugin|torch_cpu|dnnl|ctranslate2|llama)"
    r"[-.][^/]*$"
)
OPENMP = ("gomp", "iomp5", "omp")


def mapped_libraries(maps: str) -> dict[str, str]:
    """Return known thread-pool, allocator and engine libraries in the text of /proc/PID/maps, name to path."""
    found: dict[str, str] = {}
    for line in maps.splitlines():
        path = line[73:] if len(line) > 73 else ""  # noqa: PLR2004 - the path's column in /proc/PID/maps
        match = KNOWN_LIBRARIES.search(path)
        if match:
            name = match["name"]
            known = found.get(name)
            if known is None:
                found[name] = path
            elif known != path and name in OPENMP:
                found[f"{name}#2"] = path
    return found


def started_with(path: Path = Path("/proc/self/environ")) -> dict[str, str]:
    """Return the environment that this process was started with, which libraries read at load; empty without /proc."""
    try:
        entries = path.read_bytes().split(b"\0")
    except OSError:
        return {}
    pairs = (os.fsdecode(entry).partition("=") for entry in entries if entry)
    return {name: value for name, _, value in pairs}


def preloads_not_mapped(environment: Mapping[str, str], maps: str) -> tuple[str, ...]:
    """Return the libraries of LD_PRELOAD that are not mapped: ld.so ignores one it cannot load and goes on."""
    asked = [path for path in re.split(r"[:\s]", environment.get("LD_PRELOAD", "")) if path]
    mapped = {line[73:] for line in maps.splitlines() if len(line) > 73}  # noqa: PLR2004 - the path's column
    return tuple(path for path in asked if path not in mapped and os.path.realpath(path) not in mapped)


def thread_masks(task_directory: Path = Path("/proc/self/task")) -> dict[int, tuple[int, ...]]:
    """Return the CPU mask of every thread by thread id; empty where /proc is absent."""
    masks: dict[int, tuple[int, ...]] = {}
    try:
        threads = list(task_directory.iterdir())
    except OSError:
        return masks
    for thread in threads:
        try:
            status = (thread / "status").read_text()
        except OSError:
            continue  # the thread ended meanwhile
        match = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
        if match:
            masks[int(thread.name)] = cpu_list(match[1])
    return masks


def cpu_list(text: str) -> tuple[int, ...]:
    """Read the kernel's list syntax: ``0-3,8`` is (0, 1, 2, 3, 8)."""
    cpus: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return tuple(cpus)


def escaped_threads(masks: Mapping[int, tuple[int, ...]], allowed: Iterable[int]) -> dict[int, tuple[int, ...]]:
    """Return the threads whose mask leaves `allowed`."""
    inside = set(allowed)
    return {thread: mask for thread, mask in masks.items() if not set(mask) <= inside}


def own_cpus() -> tuple[int, ...]:
    """Return the mask of the main thread; empty where the system has none."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()


def process_age_s(stat: str | None = None, uptime_s: float | None = None) -> float:
    """Return seconds since this process was started, in the kernel's clock ticks (10 ms)."""
    if stat is None:
        try:
            stat = Path("/proc/self/stat").read_text()
        except OSError:
            return time.process_time()
    if uptime_s is None:
        uptime_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    started_ticks = int(stat.rpartition(")")[2].split()[19])
    return max(0.0, uptime_s - started_ticks / os.sysconf("SC_CLK_TCK"))


def settings_not_applied(asked: Mapping[str, object], effective: Mapping[str, object]) -> tuple[str, ...]:
    """Return one text for every setting that was asked and reads back otherwise; unreadable ones are left out."""
    return tuple(
        f"{name}: asked {value!r}, in force {effective[name]!r}"
        for name, value in asked.items()
        if value is not None and name in effective and effective[name] is not None and effective[name] != value
    )
