"""Names how a worker ended, from its exit status and the last lines it printed; pure."""

import re
import signal

from tuner.errors import FailureKind

_LIBRARY_PATH = re.compile(r"[^\s,:]*lib(?:gomp|iomp5|omp)[^\s,:]*")
_THREADS = re.compile(r"^.*(?:Thread creation failed|can't start new thread|pthread_create failed).*$", re.MULTILINE)
_MEMORY = re.compile(
    r"^.*(?:bad_alloc|MemoryError|Cannot allocate memory|out of memory).*$", re.MULTILINE | re.IGNORECASE
)


def classify_exit(returncode: int | None, tail: str) -> tuple[FailureKind, str]:  # noqa: PLR0911 - a table of ends
    """Return the failure kind and a sentence.

    Args:
        returncode: As `subprocess` gives it (negative: signal), None if the process still runs without its pipe.
        tail: The last lines that the worker printed.
    """
    if "OMP: Error #15" in tail:
        paths = ", ".join(dict.fromkeys(_LIBRARY_PATH.findall(tail))) or "not named"
        return "crash", f"duplicate OpenMP runtime in one process ({paths}): keep one of the libraries"
    threads = _THREADS.search(tail)
    if threads:
        return "error", f"no more threads or processes allowed (pids or memory limit): {threads[0].strip()}"
    if returncode is None:
        return "crash", "closed its answers and still ran"
    if returncode == 0:
        return "crash", "ended with exit status 0 and without an answer"
    if returncode > 0:
        if _MEMORY.search(tail):
            return "out_of_memory", f"exit status {returncode}: {last_line(tail)}"
        return "crash", f"exit status {returncode}: {last_line(tail)}"
    name = signal.Signals(-returncode).name if -returncode in set(signal.Signals) else f"signal {-returncode}"
    if name == "SIGKILL":
        return "out_of_memory", "killed by SIGKILL: most likely the out-of-memory killer (see memory limits)"
    if name == "SIGILL":
        return "illegal_instruction", "SIGILL: the library uses an instruction this CPU does not have"
    if _MEMORY.search(tail):
        return "out_of_memory", f"{name}: {last_line(tail)}"
    return "crash", f"{name}: {last_line(tail)}"


def last_line(tail: str) -> str:
    """Return the last non-empty line, cut to 300 characters."""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "nothing was printed"
