"""Scores outputs by the metric that was asked, in workers alone; only here a user's function is imported and called."""

import contextlib
import difflib
import importlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from tuner.errors import UsageError
from tuner.measure.scores import (
    LEAST_ROWS,
    Loss,
    chance_recall,
    cosines,
    hits,
    is_chance,
    macro_f1,
    neighbour_recall,
    paired_loss,
    spearman,
)
from tuner.models.data import Row
from tuner.models.metrics import is_paired, neighbours
from tuner.models.wording import one_line
from tuner.records.measurement import Fidelity
from tuner.records.workload import Metric

ROWS = "rows.json"
MOST_CHANCE = 0.5
"""Recall of neighbours drawn at random above which a recall says nothing."""
CALLED = "it is called as function(rows, outputs) and returns a number, or one a row, higher being better"

Outputs = np.ndarray | list[Any]
"""One entry a row: vectors (n, d), of pairs (n, 2, d), logits (n, classes), or a list of what the graph answers."""
Function = Callable[[Sequence[dict[str, object]], Any], Any]


class MetricRows(NamedTuple):
    """The rows that outputs belong to, in the order of the samples.

    Attributes:
        rows: As the user's function gets them; empty for a metric of ours.
        targets: Class ids or scores, for a metric of ours.
        texts_per_row: 2 where the two texts of a row are run one after the other.
    """

    n: int
    rows: list[dict[str, object]]
    targets: list[float]
    texts_per_row: int


def write_rows(directory: Path, metric: Metric, rows: Sequence[Row], targets: Sequence[float], *, task: str) -> None:
    """Write ``rows.json``: what is needed of the rows to score outputs."""
    content = MetricRows(
        n=len(rows),
        rows=[row.shown() for row in rows] if metric.is_code else [],
        targets=list(targets),
        texts_per_row=1 + is_paired(metric, rows, task),
    )
    (directory / ROWS).write_text(json.dumps(content._asdict()))


def read_rows_file(directory: Path) -> MetricRows:
    """Read ``rows.json``."""
    return MetricRows(**json.loads((directory / ROWS).read_text()))


class Scorer:
    """A metric ready to score outputs.

    Raises:
        UsageError: The user's module or function cannot be had.
    """

    def __init__(self, metric: Metric, rows: MetricRows, code_dir: str | None) -> None:
        self.metric = metric
        self._rows = rows
        self._code_dir = code_dir
        self._function = import_function(metric, code_dir)

    def check_reference(self, outputs: Outputs) -> float:
        """Return the reference's figure.

        Raises:
            UsageError: It is zero or no better than chance, so that no loss could be seen; the user's function raises.
        """
        n = len(outputs)
        k = neighbours(self.metric)
        if k is not None:
            self._check_recall(cast("np.ndarray", outputs), k)
            return 1.0
        self._check_classes(outputs)
        figure = float(np.mean(self._score(outputs, np.arange(n))))
        if figure == 0:
            raise UsageError(
                f"--metric {self.metric.name} is 0 for the float32 model: no loss could be seen; {self._why()}"
            )
        chance = is_chance(lambda order: float(np.mean(self._score(outputs, np.arange(n), order))), n)
        if chance or (chance is None and not self.metric.is_code):
            raise UsageError(
                f"--metric {self.metric.name} is {figure:.3g} for the float32 model on {n} rows, no better than "
                f"chance: no loss could be seen; {self._why()}"
            )
        return figure

    def loss(self, reference: Outputs, candidate: Outputs) -> Loss | None:
        """Compare a candidate's outputs with the reference's on the same rows; None where they are too few.

        Raises:
            UsageError: The user's function raises or returns no number.
        """
        n = len(candidate)
        k = neighbours(self.metric)
        if n < LEAST_ROWS or (k is not None and n <= 2 * k):
            return None
        if k is not None:
            recall = neighbour_recall(np.asarray(reference), np.asarray(candidate), k)
            return paired_loss(lambda kept: np.ones(len(kept)), lambda kept: recall[kept], n)
        return paired_loss(lambda kept: self._score(reference, kept), lambda kept: self._score(candidate, kept), n)

    def _check_recall(self, vectors: np.ndarray, k: int) -> None:
        n = len(vectors)
        chance = 1.0 if n <= 2 * k else chance_recall(vectors, k)
        if chance > MOST_CHANCE:
            raise UsageError(
                f"--metric {self.metric.name} on {n} texts is {chance:.0%} by chance: give more different texts or a "
                "smaller K"
            )

    def _check_classes(self, outputs: Outputs) -> None:
        shape = np.shape(outputs)
        if self.metric.name == "spearman" and self._rows.texts_per_row == 1 and shape[1:] != (1,):
            raise UsageError(
                f"--metric spearman needs vectors or one score a row, the model answers {list(shape)}: "
                "use module:function"
            )
        if self.metric.is_code or self.metric.name == "spearman":
            return
        highest = max(self._rows.targets, default=0)
        if len(shape) != 2 or shape[1] < 2:  # noqa: PLR2004 - rows and classes
            raise UsageError(
                f"--metric {self.metric.name} needs logits (rows, classes), the model answers {list(shape)}: "
                "use module:function"
            )
        if highest >= shape[1]:
            raise UsageError(f"the data have label {highest:g}, the model {shape[1]} classes from 0: check the labels")

    def _why(self) -> str:
        return f"check what the function compares: {CALLED}" if self.metric.is_code else "check labels, data and --task"

    def _score(self, outputs: Outputs, kept: np.ndarray, order: np.ndarray | None = None) -> float | np.ndarray:
        """Score the rows `kept`, whose outputs are those of rows `order` instead where that is given."""
        taken = kept if order is None else order[kept]
        chosen: Any = outputs[taken] if isinstance(outputs, np.ndarray) else [outputs[int(row)] for row in taken]
        if self._function is not None:
            return self._call([dict(self._rows.rows[int(row)]) for row in kept], chosen)
        targets = [self._rows.targets[int(row)] for row in kept]
        if self.metric.name == "spearman":
            return spearman(chosen[:, 0] if chosen.ndim == 2 else cosines(chosen), targets)  # noqa: PLR2004 - one score
        labels = [int(target) for target in targets]
        return hits(chosen, labels) if self.metric.name == "accuracy" else macro_f1(chosen, labels)

    def _call(self, rows: list[dict[str, object]], outputs: object) -> float | np.ndarray:
        assert self._function is not None
        name = f"--metric {self.metric.name}"
        with _importable(self._code_dir):
            try:
                answer = self._function(rows, outputs)
            except (Exception, SystemExit) as error:
                raise UsageError(
                    f"{name} raised {type(error).__name__}: {one_line(error)}: {CALLED}, on any part of the rows"
                ) from error
        try:
            values = np.asarray(answer, dtype=float)
        except (TypeError, ValueError):
            raise UsageError(f"{name} returned {type(answer).__name__}, no number: {CALLED}") from None
        if values.ndim > 1 or (values.ndim == 1 and len(values) != len(rows)):
            raise UsageError(f"{name} returned shape {list(values.shape)} for {len(rows)} rows: {CALLED}")
        if not np.isfinite(values).all():
            raise UsageError(f"{name} returned {values[~np.isfinite(values)].flat[0]}: {CALLED}")
        return values if values.ndim else float(values)


def import_function(metric: Metric, code_dir: str | None) -> Function | None:
    """Import the function of a metric of the user's; None for one of ours.

    Raises:
        UsageError: Importing its module raises, or it has no such function; names the nearest.
    """
    if not metric.is_code:
        return None
    module_name, _, function_name = metric.name.partition(":")
    name = f"--metric {metric.name}"
    with _importable(code_dir):
        try:
            module = importlib.import_module(module_name)
        except (Exception, SystemExit) as error:
            raise UsageError(
                f"{name}: importing {module_name} raised {type(error).__name__}: {one_line(error)}: mend the module"
            ) from error
    function = getattr(module, function_name, None)
    if callable(function):
        return cast("Function", function)
    known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    near = difflib.get_close_matches(function_name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known[:8]) or 'none'}"
    raise UsageError(f"{name}: {module_name} has no function {function_name}: {hint}")


@contextlib.contextmanager
def _importable(directory: str | None) -> Iterator[None]:
    """Let modules be imported from the user's directory, for as long as code of the user's runs."""
    if directory is None:
        yield
        return
    sys.path.insert(0, directory)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(directory)


def with_loss(fidelity: Fidelity, loss: Loss | None) -> Fidelity:
    """Return a fidelity with the metric's figures in it."""
    if loss is None:
        return fidelity
    figures = {
        "metric": loss.candidate,
        "metric_reference": loss.reference,
        "metric_loss": loss.loss,
        "metric_loss_high": loss.high,
        "details": fidelity.details | {"metric_loss_low": loss.low},
    }
    return fidelity.model_copy(update=figures)
