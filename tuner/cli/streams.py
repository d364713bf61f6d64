"""Standard output and error at their worst: closed, full, read by a program that has gone, or not Unicode."""

import contextlib
import errno
import io
import os
import sys
from typing import TextIO

FULL = (errno.ENOSPC, errno.EDQUOT)


def accept_all_letters() -> None:
    """Print letters that the terminal's encoding lacks as escapes, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """Print one line on standard error, without control characters; nobody may be there to read it."""
    if sys.stderr is not None:
        line = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
        with contextlib.suppress(OSError):
            sys.stderr.write(line + "\n")


def flush(stream: TextIO | None) -> str | None:
    """Write out what a stream still holds, and return why that failed; a reader that has gone is no failure.

    The stream then leads nowhere: Python would otherwise end with exit code 120.
    """
    if stream is None:
        return None
    try:
        stream.flush()
    except OSError as error:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return None if isinstance(error, BrokenPipeError) else error.strerror
    return None
