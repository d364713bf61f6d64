"""What must happen before a worker imports anything heavy: standard library only, no message is read here."""

import argparse
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from io import BufferedReader, FileIO
from pathlib import Path

PR_SET_PDEATHSIG = 1
OOM_SCORE_ADJ = 800


def parse_options(argv: Sequence[str]) -> argparse.Namespace:
    """Read the worker's few options."""
    parser = argparse.ArgumentParser(prog="python -P -m tuner.worker", description="Obeys one JSON command a line.")
    parser.add_argument("--answer-fd", type=int, default=1, help="descriptor for the answers (default: stdout)")
    parser.add_argument("--parent", type=int, default=None, help="die when this process is gone")
    parser.add_argument("--cpus", default=None, help="mask as a comma list of CPU ids; default: as inherited")
    parser.add_argument("--memory-policy", default=None, help="bind:NODES or interleave:NODES")
    return parser.parse_args(argv)


def take_position(options: argparse.Namespace) -> None:
    """Bind this process to its parent's life, its CPUs and its memory nodes.

    Raises:
        SystemExit: The parent is gone already, or the mask or the policy cannot be set.
    """
    if options.parent is not None and sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != options.parent:
            raise SystemExit("the parent is gone")
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE_ADJ))
    if options.cpus is not None and hasattr(os, "sched_setaffinity"):
        wanted = {int(cpu) for cpu in options.cpus.split(",")}
        os.sched_setaffinity(0, wanted)
        if os.sched_getaffinity(0) != wanted:
            raise SystemExit(f"mask {sorted(wanted)} is not in force: {sorted(os.sched_getaffinity(0))}")
    if options.memory_policy is not None:
        set_memory_policy(options.memory_policy)


def set_memory_policy(text: str) -> None:
    """Put ``bind:0,1`` or ``interleave:0,1`` in force and read it back; only asked for on machines with nodes.

    Raises:
        SystemExit: The policy is refused or not in force.
    """
    from tuner.hardware.memory_policy import parse_policy, set_policy

    try:
        set_policy(parse_policy(text))
    except (OSError, ValueError) as error:
        raise SystemExit(f"memory policy {text}: {error}") from error


def open_channels(options: argparse.Namespace) -> tuple[BufferedReader, FileIO]:
    """Take commands and answers away from descriptors 0 and 1, which libraries may use."""
    commands = os.fdopen(os.dup(0), "rb")
    answer_fd = os.dup(options.answer_fd)
    if options.answer_fd != 1:
        os.close(options.answer_fd)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    os.set_inheritable(answer_fd, False)
    return commands, os.fdopen(answer_fd, "wb", buffering=0)
