"""Shows a run while it goes on, on standard error: rich lines, plain lines, JSON lines or nothing."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Literal

from tuner.records.events import Event, OnEvent

Progress = Literal["auto", "plain", "json", "none"]
STYLES = {"notice": "yellow", "verdict": "bold", "baseline": "cyan", "build": "dim", "built": "dim", "audit": "dim"}


@contextlib.contextmanager
def reporter(progress: Progress) -> Iterator[OnEvent]:
    """Give the callable that events are sent to."""
    if progress == "none" or sys.stderr is None:
        yield lambda event: None  # noqa: ARG005 - nothing is shown
    elif progress == "json":
        yield _json_line
    elif progress == "plain" or not sys.stderr.isatty():
        yield _plain_line
    else:
        with _rich() as on_event:
            yield on_event


def _json_line(event: Event) -> None:
    _write(event.to_json())


def _plain_line(event: Event) -> None:
    _write(f"{clock(event)}{event.text}")


def _write(line: str) -> None:
    """Write a line; a run outlives the reader of its progress (``2>&1 | head -1``) and a full disk under its log."""
    with contextlib.suppress(OSError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def clock(event: Event) -> str:
    """Return the elapsed time in front of a line: ``[ 1:05] ``."""
    if event.elapsed_s is None:
        return ""
    return f"[{int(event.elapsed_s // 60):2d}:{int(event.elapsed_s % 60):02d}] "


@contextlib.contextmanager
def _rich() -> Iterator[OnEvent]:
    """Lines with colours, and one line at the bottom that says what is being done now."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    with console.status("starting") as status:

        def show(event: Event) -> None:
            if event.kind == "build":
                status.update(Text(f"building {event.text}"))
                return
            line = Text(clock(event), style="dim")
            line.append(event.text, style=STYLES.get(event.kind, ""))
            console.print(line)
            status.update(Text("measuring; nothing else should run on this machine"))

        yield show
