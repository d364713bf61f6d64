"""Reads which metric is asked and checks the rows of the data for it; it computes nothing and runs no user's code."""

import difflib
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tuner.errors import UsageError
from tuner.measure.scores import LEAST_ROWS
from tuner.models.data import Row, read_columns, read_rows
from tuner.models.digests import digest_file
from tuner.models.sources import locate_function
from tuner.models.tasks import METHODS
from tuner.records.model import ModelFacts
from tuner.records.workload import Metric

CLASSES = ("text-classification", "image-classification")
TASKS = {
    "accuracy": CLASSES,
    "f1": CLASSES,
    "spearman": ("feature-extraction", "text-classification"),
    "recall": ("feature-extraction",),
}
NAMES = ("accuracy", "f1", "spearman", "recall@10", "module:function")
DEFAULT_MAX_LOSS = 0.01
MOST_TEXTS = 4096
"""Texts of the user's rows that are scored; a pair has two."""
_CODE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_RECALL = re.compile(r"recall@([1-9]\d{0,3})")


def metric_of(name: str | None, max_loss: float | None, data: str | None) -> Metric | None:
    """Return the metric that the options ask for, None where they ask for none.

    Raises:
        UsageError: An unknown name, no such module, no data to measure on, a limit without a metric.
    """
    if name is None:
        if max_loss is not None:
            raise UsageError(f"--max-loss {max_loss:g} of what? give --metric too ({', '.join(NAMES)})")
        return None
    if data is None:
        raise UsageError(f"--metric {name} is measured on your rows: give --data FILE.jsonl")
    limit = DEFAULT_MAX_LOSS if max_loss is None else max_loss
    if _CODE.fullmatch(name):
        return Metric(name=name, max_loss=limit, sha256=digest_file(_source_of(name)))
    if name not in TASKS and not _RECALL.fullmatch(name):
        near = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(NAMES)}"
        raise UsageError(f"unknown --metric {name!r}: {hint}")
    if name == "recall":
        raise UsageError("--metric recall of how many neighbours? write recall@10")
    return Metric(name=name, max_loss=limit)


def neighbours(metric: Metric) -> int | None:
    """Return K of ``recall@K``, None for other metrics."""
    match = _RECALL.fullmatch(metric.name)
    return int(match[1]) if match else None


def require_trust_in_metric(name: str | None, *, trust_code: bool, source: str) -> None:
    """Refuse to run code that a profile names as its metric unless the one who runs this trusts it.

    Raises:
        UsageError: It is not trusted.
    """
    if name is not None and ":" in name and not trust_code:
        raise UsageError(f"{source} runs {name} as its metric: give --trust-code if you trust that code")


def check_rows(metric: Metric, facts: ModelFacts, data: str) -> int:
    """Check that every row has what the metric needs, as far as files say; return the number of rows.

    Raises:
        UsageError: The metric is not for this task, rows are missing something, or are too few.
    """
    tasks = TASKS.get(metric.name.partition("@")[0])
    if tasks is not None and facts.task not in tasks:
        raise UsageError(
            f"--metric {metric.name} is for --task {tasks[0]}, not {facts.task}: choose another, or module:function"
        )
    rows = read_columns(data) if data.endswith(".npz") else read_rows(data)
    targets_of(metric, rows, data, label_names(Path(facts.path)))
    if len(rows) < LEAST_ROWS:
        raise UsageError(
            f"{data} has {len(rows)} rows: --metric needs {LEAST_ROWS} at least, hundreds to show anything"
        )
    return len(rows)


def is_paired(metric: Metric, rows: Sequence[Row], task: str) -> bool:
    """Say whether the two texts of a row are run one after the other, for the Spearman and for code of the user's.

    Other models than encoders of sentences read both together. Code gets two outputs a row if every row has a pair.
    """
    if METHODS[task] != "embedding":
        return False
    return metric.name == "spearman" or (metric.is_code and all(isinstance(row.extra.get("pair"), str) for row in rows))


def targets_of(metric: Metric, rows: Sequence[Row], data: str, names: Mapping[str, int]) -> list[float]:
    """Return what the outputs are compared with: class ids, scores, or nothing.

    Args:
        metric: What is asked.
        rows: Of the data.
        data: Their file, for errors.
        names: Class ids by the model's own label names.

    Raises:
        UsageError: A row lacks its label, pair or score, or has one that is unknown or no number.
    """
    if metric.name in ("accuracy", "f1"):
        return [_class_of(row, f"{data}, {row.place}", metric.name, names) for row in rows]
    if metric.name == "spearman":
        return [_score_of(row, f"{data}, {row.place}") for row in rows]
    return []


def label_names(model: Path) -> dict[str, int]:
    """Return class ids by label name as ``config.json`` in, beside or above a model has them; empty if it has none."""
    places = (model,) if model.is_dir() else (model.parent, model.parent.parent)
    for place in places:
        try:
            content = json.loads((place / "config.json").read_text())
        except (OSError, ValueError):
            continue
        names = content.get("id2label") if isinstance(content, dict) else None
        if isinstance(names, dict):
            return {str(name): int(number) for number, name in names.items() if str(number).isdigit()}
    return {}


def _class_of(row: Row, where: str, name: str, names: Mapping[str, int]) -> int:
    label = row.extra.get("label")
    if label is None:
        raise UsageError(f'{where}: no label, which --metric {name} needs: write {{"text": …, "label": …}}')
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if isinstance(label, str) and label not in names and label.isdecimal():
        label = int(label)
    if isinstance(label, str) and label in names:
        return names[label]
    if isinstance(label, int) and label >= 0 and (not names or label in names.values()):
        return int(label)
    known = ", ".join(list(names)[:8]) if names else "class numbers from 0 (its config.json names none)"
    raise UsageError(f"{where}: the model does not know label {label!r}: it knows {known}")


def _score_of(row: Row, where: str) -> float:
    pair, score = row.extra.get("pair"), row.extra.get("score")
    if not isinstance(pair, str) or not pair.strip():
        raise UsageError(f'{where}: no pair, which --metric spearman needs: write {{"text": …, "pair": …, "score": …}}')
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
        raise UsageError(f"{where}: score is {score!r}, --metric spearman needs a number")
    return float(score)


def _source_of(name: str) -> Path:
    """Return the file of the module of ``module:function``; none of it runs."""
    try:
        return locate_function(f"py:{name}")
    except UsageError:
        module = name.partition(":")[0]
        raise UsageError(
            f"--metric {name}: no module {module} in {Path.cwd()} or installed: start where it is"
        ) from None
