"""Makes the timed batches and the fidelity samples of a workload; it opens no model and writes no file."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tuner.errors import UsageError
from tuner.models.data import Row, read_arrays, read_columns, read_rows
from tuner.models.filling import fill, fixed_rows, ids_input, sample_rows
from tuner.models.metrics import is_paired
from tuner.models.sampling import Composer, builtin_pools
from tuner.models.tasks import METHODS
from tuner.models.tokenizing import Text, TextTokenizer
from tuner.records.model import ModelFacts, TensorSpec
from tuner.records.workload import Metric, Workload

Batch = dict[str, np.ndarray]
BATCHES_PER_LENGTH = 8
MOST_BATCHES = 64


class Traffic(NamedTuple):
    """What is run: timed batches, endless or finite samples of one row, and what they are made of.

    Attributes:
        rows: Those of a metric, in the order of the samples.
    """

    batches: list[Batch]
    samples: Iterator[Batch]
    texts: str
    items_per_batch: int
    rows: Sequence[Row] = ()


def make_traffic(
    facts: ModelFacts,
    workload: Workload,
    specs: Sequence[TensorSpec],
    lengths: Sequence[int],
    data: str | None,
    *,
    metric: Metric | None = None,
) -> Traffic:
    """Make the traffic of `workload` for a graph with inputs `specs`.

    Args:
        facts: The model, for its tokenizer.
        workload: Batch size and seed.
        specs: The graph's inputs.
        lengths: Sizes of the free axis, in arrival order.
        data: The user's file, or None.
        metric: What is scored on its rows.

    Raises:
        UsageError: The data do not fit the model.
    """
    random = np.random.default_rng(workload.seed)
    if data is not None and data.endswith(".npz"):
        columns = [] if metric is None else read_columns(data, [spec.name for spec in specs])
        return arrays_traffic(read_arrays(data), specs, workload, random, columns=columns)
    tokenizer = TextTokenizer.open(Path(facts.path)) if ids_input(specs) else None
    if data is not None and tokenizer is None:
        raise UsageError(f"{data} holds texts but {facts.source} has no tokenizer.json beside it: give --data FILE.npz")
    n_rows = batch_rows(specs, workload)
    if tokenizer is None:
        made = (fill(specs, n_rows, length, random) for length in _arrivals(lengths, 1, random))
        return Traffic(list(made), _generated(specs, lengths, random), "generated", n_rows)
    pools, texts = builtin_pools(tokenizer)
    samples: Iterator[Batch] | None = None
    rows: list[Row] = []
    firsts: list[str] = []
    if data is not None:
        found = read_rows(data)
        pools, texts = [[row.text for row in found]], "data"
        is_joined = METHODS[facts.task] != "embedding" and are_pairs(found, data)
        if is_joined:
            firsts, pools = pools[0], [[str(row.extra["pair"]) for row in found]]
        rows = [found[int(i)] for i in random.permutation(len(found))]
        is_apart = metric is not None and is_paired(metric, rows, facts.task)
        listed = joined_of(rows) if is_joined else texts_of(rows) if is_apart else [row.text for row in rows]
        samples = _from_texts(listed, tokenizer, specs, max(lengths), random)
    composer = Composer(tokenizer, pools, workload.seed, firsts)

    def batch_of(sizes: Sequence[int]) -> Batch:
        text = tokenizer.pad_rows([composer.tokens(size) for size in sizes])
        return fill(specs, len(sizes), max(sizes), random, text)

    arrivals = _arrivals(lengths, n_rows, random)
    batches = [batch_of(arrivals[start : start + n_rows]) for start in range(0, len(arrivals), n_rows)]
    return Traffic(batches, samples or _composed(batch_of, specs, lengths), texts, n_rows, rows)


def are_pairs(rows: Sequence[Row], data: str) -> bool:
    """Say whether rows are pairs of texts.

    Raises:
        UsageError: Some are.
    """
    apart = [row for row in rows if not isinstance(row.extra.get("pair"), str)]
    if apart and len(apart) < len(rows):
        raise UsageError(f"{data}, {apart[0].place}: no pair, which other rows have: give all rows one, or none")
    return not apart


def joined_of(pairs: Sequence[Row]) -> list[Text]:
    """Return pairs as a cross-encoder reads them: both texts in one row."""
    return [(row.text, str(row.extra["pair"])) for row in pairs]


def texts_of(pairs: Sequence[Row]) -> list[Text]:
    """Return the texts of pairs, those of a pair next to each other."""
    return [text for row in pairs for text in (row.text, str(row.extra["pair"]))]


def batch_rows(specs: Sequence[TensorSpec], workload: Workload) -> int:
    """Return the rows of one batch: the graph's fixed batch axis, else what the workload asks.

    Raises:
        UsageError: Both say something and differ.
    """
    fixed = fixed_rows(specs)
    if fixed is not None and workload.batch_size not in {1, fixed}:
        raise UsageError(f"the graph takes batches of {fixed} only: leave --batch-size out")
    return workload.batch_size if fixed is None else fixed


def _arrivals(lengths: Sequence[int], n_rows: int, random: np.random.Generator) -> list[int]:
    """Return row lengths of all timed batches, a multiple of `n_rows`, in arrival order."""
    wanted = min(MOST_BATCHES, max(BATCHES_PER_LENGTH, BATCHES_PER_LENGTH * len(lengths) // n_rows)) * n_rows
    if wanted >= len(lengths):
        return [lengths[i % len(lengths)] for i in range(wanted)]
    chosen = np.sort(random.choice(len(lengths), wanted, replace=False))
    return [lengths[int(i)] for i in chosen]


def _composed(
    batch_of: Callable[[Sequence[int]], Batch], specs: Sequence[TensorSpec], lengths: Sequence[int]
) -> Iterator[Batch]:
    n_rows = sample_rows(specs)
    index = 0
    while True:
        yield batch_of([lengths[index % len(lengths)]] * n_rows)
        index += 1


def _generated(specs: Sequence[TensorSpec], lengths: Sequence[int], random: np.random.Generator) -> Iterator[Batch]:
    n_rows = sample_rows(specs)
    index = 0
    while True:
        yield fill(specs, n_rows, lengths[index % len(lengths)], random)
        index += 1


def _from_texts(
    texts: Sequence[Text],
    tokenizer: TextTokenizer,
    specs: Sequence[TensorSpec],
    longest: int,
    random: np.random.Generator,
) -> Iterator[Batch]:
    n_rows = sample_rows(specs)
    for start in range(0, len(texts) - n_rows + 1, n_rows):
        text = tokenizer.encode(texts[start : start + n_rows], longest)
        yield fill(specs, n_rows, text["input_ids"].shape[1], random, text)


def arrays_traffic(
    arrays: Batch,
    specs: Sequence[TensorSpec],
    workload: Workload,
    random: np.random.Generator,
    rest: Callable[[int], Batch] | None = None,
    *,
    columns: Sequence[Row] = (),
) -> Traffic:
    """Make traffic of the user's arrays, whose first axis counts rows; `rest` gives the other inputs for so many rows.

    What is named in `columns`, one a row, is for a metric and no input.

    Raises:
        UsageError: An array is no input, or of another dtype or rank, or there are too few rows.
    """
    by_name = {spec.name: spec for spec in specs}
    arrays = {name: array for name, array in arrays.items() if not columns or name not in columns[0].extra}
    unknown = sorted(set(arrays) - set(by_name))
    if unknown:
        raise UsageError(f"--data has array {unknown[0]!r}, which is no input of the graph: {', '.join(by_name)}")
    for name, array in arrays.items():
        if array.dtype != by_name[name].dtype:
            raise UsageError(f"--data array {name!r} is {array.dtype}, the graph takes {by_name[name].dtype}")
        if array.ndim != len(by_name[name].shape):
            raise UsageError(f"--data array {name!r} has {array.ndim} axes, the graph takes {len(by_name[name].shape)}")
    rows = {name: array for name, array in arrays.items() if array.ndim}
    n_total = min(len(array) for array in rows.values())
    n_rows = batch_rows(specs, workload)
    if n_total < n_rows:
        raise UsageError(f"--data has {n_total} rows, one batch takes {n_rows}: give more or lower --batch-size")
    length = next((array.shape[-1] for array in rows.values() if array.ndim > 1), 1)

    def slice_of(start: int, count: int) -> Batch:
        batch = fill(specs, count, length, random) if rest is None else rest(count)
        cut = {name: np.ascontiguousarray(array[start : start + count]) for name, array in rows.items()}
        return batch | cut | {name: array for name, array in arrays.items() if not array.ndim}

    starts = list(range(0, n_total - n_rows + 1, n_rows))[:MOST_BATCHES]
    one = sample_rows(specs)
    order = [int(start) * one for start in random.permutation(n_total // one)]
    samples = (slice_of(start, one) for start in order)
    beside = [row for start in order for row in columns[start : start + one]]
    return Traffic([slice_of(start, n_rows) for start in starts], samples, "data", n_rows, beside)
