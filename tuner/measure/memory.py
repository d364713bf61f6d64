"""Reads and resets the peak resident memory of a process through /proc; null where the kernel does not offer it."""

from pathlib import Path

_RESET_PEAK = "5"
_KIB = 1024


def status_bytes(text: str, field: str) -> int | None:
    """Return a memory field of /proc/<pid>/status (``VmHWM``, ``VmRSS``, …) in bytes, None if it is not there."""
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name == field:
            words = rest.split()
            return int(words[0]) * _KIB if words and words[0].isdigit() else None
    return None


def peak_rss_bytes(status: Path = Path("/proc/self/status")) -> int | None:
    """Return the peak resident set (VmHWM) since the start or the last reset."""
    return _field(status, "VmHWM")


def rss_bytes(status: Path = Path("/proc/self/status")) -> int | None:
    """Return the resident set (VmRSS)."""
    return _field(status, "VmRSS")


def reset_peak(clear_refs: Path = Path("/proc/self/clear_refs")) -> bool:
    """Set the peak to the present resident set (proc(5), clear_refs 5, Linux 4.0); say whether that worked."""
    try:
        clear_refs.write_text(_RESET_PEAK, encoding="ascii")
    except OSError:
        return False
    return True


def _field(status: Path, field: str) -> int | None:
    try:
        return status_bytes(status.read_text(encoding="utf-8", errors="replace"), field)
    except OSError:
        return None
