"""Shows a study: its trials, failures included, from measurements.jsonl alone."""

import json
import math
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tuner.errors import UsageError
from tuner.loading.files import without_controls
from tuner.reporting.formats import config_line, seconds
from tuner.study.store import StudyStore, TrialRecord

HUGE_LOG = 300.0
"""A ratio's logarithm that no measurement has; its exponential may not be a float."""


def show_study(directory: Path, *, as_json: bool) -> None:
    """Print the trials of a study on standard output, best first, failures last.

    Raises:
        UsageError: The directory holds no study.
    """
    store = StudyStore(directory)
    records = store.records()
    if not records and store.state() is None:
        raise UsageError(f"{directory}: no study here (no measurements.jsonl)")
    if as_json:
        rows = [record.model_dump(mode="json", exclude={"candidate_blocks", "anchor_blocks"}) for record in records]
        sys.stdout.write(json.dumps({"study": str(directory), "trials": rows}, indent=1, allow_nan=False) + "\n")
        return
    console = Console(highlight=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for name in ("trial", "state", "p50", "against the anchor", "config"):
        table.add_column(name, no_wrap=name != "config", overflow="fold")
    for record in sorted(records, key=lambda record: (record.value is None, record.value or 0.0)):
        cells = (str(record.number), state_of(record), p50_of(record), ratio_of(record), config_line(record.config))
        table.add_row(*map(plain, cells))
    console.print(table)
    for record in records:
        if record.failure is not None:
            failure = record.failure
            text = f"#{record.number} failed in {failure.stage}: {failure.kind}: {failure.message}"
            console.print(plain(text), style="dim")


def plain(text: str) -> Text:
    """Return a text of the file as it stands there: brackets are no markup, and nothing in it steers the terminal."""
    return Text(str(without_controls(text)))


def state_of(record: TrialRecord) -> str:
    """Return the state as a person reads it."""
    broken = [key for key, value in record.violations.items() if value > 0]
    name = record.purpose if record.purpose in ("baseline", "playoff") else record.state
    return f"{name}, misses {broken[0]}" if broken else name


def p50_of(record: TrialRecord) -> str:
    """Return the median latency."""
    return seconds(record.measurement.latency_s.p50 if record.measurement is not None else None)


def ratio_of(record: TrialRecord) -> str:
    """Return how many times the anchor's cost this one took."""
    if record.value is None:
        return "–"
    return f"×{math.exp(record.value):.3f}" if record.value < HUGE_LOG else "×∞"
