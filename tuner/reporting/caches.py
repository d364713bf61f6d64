"""The readable answer of `autotune cache`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tuner.artifacts.pruning import Entry
from tuner.reporting.formats import seconds, size


def render_cache(
    directory: Path, present: Sequence[Entry], removed: Sequence[Entry], console: Console | None = None
) -> None:
    """Print the entries, least recently used first, and what was removed."""
    console = console or Console(highlight=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for name in ("key", "what", "size", "built in", "last used", ""):
        table.add_column(name, justify="right" if name in ("size", "built in") else "left")
    for entry in present:
        used = datetime.fromtimestamp(entry.last_used_s, UTC).isoformat(timespec="minutes")
        needed = "a profile needs it" if entry.is_needed else ""
        table.add_row(entry.key[:12], entry.what, size(entry.bytes), seconds(entry.build_s), used, needed)
    console.print(table)
    total = sum(entry.bytes for entry in present)
    console.print(f"{len(present)} entries, {size(total)} in {directory}", markup=False)
    if removed:
        console.print(f"removed {len(removed)} entries, {size(sum(entry.bytes for entry in removed))}")
