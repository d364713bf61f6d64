"""The readable answer of `autotune doctor`."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from tuner.reporting.formats import seconds

STYLES = {"ok": "green", "warn": "yellow", "bad": "bold red"}
Row = tuple[str, str, str, str | None]


def render_diagnosis(
    rows: Sequence[Row],
    *,
    host_class: str | None,
    resolvable: Mapping[str, float],
    pair_s: float,
    console: Console | None = None,
) -> None:
    """Print the findings, the class of the host, and what gain it resolves in how long (`pair_s` seconds a pair)."""
    console = console or Console(highlight=False)
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, state, detail, remedy in rows:
        text = detail if remedy is None else f"{detail} → {remedy}"
        table.add_row(f"[{STYLES[state]}]{state}[/]", name, text)
    console.print(table)
    if host_class is not None:
        console.print(f"this host is {host_class}")
    for pairs, gain in resolvable.items():
        time_s = int(pairs.split()[0]) * pair_s
        console.print(f"  {pairs} (about {seconds(time_s)}) resolve a gain of {gain:.1%}")
