"""The readable answer of `autotune check`."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tuner.loading.checking import CheckResult

STYLES = {
    "refuse": "bold red",
    "fallback": "red",
    "recheck": "yellow",
    "adapt": "yellow",
    "warn": "dim",
    "ignore": "dim",
}
SERVED = {
    "best": "the best config is served, its speed and accuracy are to be checked again",
    "adapted": "tuner.load refuses; with strict=False it serves the best config with the CPUs that are granted",
    "fallback": "tuner.load refuses; with strict=False it serves the fallback",
    "nothing": "tuner.load refuses, nothing is served",
}


def render_check(result: CheckResult, console: Console | None = None) -> None:
    """Print what differs and what follows."""
    console = console or Console(highlight=False, soft_wrap=True)
    if result.differences:
        table = Table(box=None, pad_edge=False)
        for name in ("field", "then", "now", "follows", ""):
            table.add_column(name)
        for one in result.differences:
            style = STYLES[one.consequence]
            cells = (one.field, text(one.then), text(one.now), one.consequence, one.detail)
            table.add_row(*(escape(cell) for cell in cells), style=style)
        console.print(table)
    if result.holds:
        console.print("holds: the profile can be served here", style="bold green")
    else:
        is_lost = any(one.field == "model" for one in result.differences)
        remedy = "give --model" if is_lost else "`autotune retune` makes it hold again"
        console.print(f"does not hold: {SERVED[result.serves]}; {remedy}", style="bold red")


def text(value: object) -> str:
    """Return a value for a table cell."""
    return "–" if value is None else str(value)
