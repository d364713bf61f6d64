"""Remembers started workers in a file and kills those that a dead tuner left behind; it starts none."""

import contextlib
import ctypes
import json
import os
import sys
from pathlib import Path

import psutil

from tuner.runner.process import TOKEN

PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """Adopt orphaned descendants (Linux), so that a worker's children can be found; return whether it worked."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def remember(path: Path, pid: int, token: str) -> None:
    """Append a started worker to `path`; a full disk is not an error here, the death signal remains."""
    with contextlib.suppress(OSError, psutil.Error):
        line = json.dumps({"pid": pid, "created_s": psutil.Process(pid).create_time(), "token": token})
        with path.open("a") as file:
            file.write(line + "\n")


def sweep_leftovers(path: Path) -> int:
    """Kill workers named in `path` that still run (same pid, start and token), forget the file; return how many."""
    killed = 0
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError, psutil.Error):
            entry = json.loads(line)
            process = psutil.Process(int(entry["pid"]))
            same = abs(process.create_time() - float(entry["created_s"])) < 1.0
            if same and process.environ().get(TOKEN) == entry["token"] and process.pid != os.getpid():
                process.kill()
                killed += 1
    with contextlib.suppress(OSError):
        path.unlink()
    return killed
