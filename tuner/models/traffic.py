"""Makes the timed batches and the fidelity samples of a workload; it opens no model and writes no file."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tuner.errors import UsageError
from tuner.models.data import Row, read_arrays, read_rows
from tuner.models.filling import fill, ids_input
from tuner.models.sampling import Composer, builtin_pools
from tuner.models.tokenizing import TextTokenizer
from tuner.records.model import ModelFacts, TensorSpec
from tuner.records.workload import Workload

Batch = dict[str, np.ndarray]
BATCHES_PER_LENGTH = 8
MOST_BATCHES = 64


class Traffic(NamedTuple):
    """What is run: timed batches, endless or finite samples of one row, and what they are made of."""

    batches: list[Batch]
    samples: Iterator[Batch]
    texts: str
    items_per_batch: int


def make_traffic(
    facts: ModelFacts, workload: Workload, specs: Sequence[TensorSpec], lengths: Sequence[int], data: str | None
) -> Traffic:
    """Make the traffic of `workload` for a graph with inputs `specs`.

    Args:
        facts: The model, for its tokenizer.
        workload: Batch size and seed.
        specs: The graph's inputs.
        lengths: Sizes of the free axis, in arrival order.
        data: The user's file, or None.

    Raises:
        UsageError: The data do not fit the model.
    """
    random = np.random.default_rng(workload.seed)
    if data is not None and data.endswith(".npz"):
        return arrays_traffic(read_arrays(data), specs, workload, random)
    tokenizer = TextTokenizer.open(Path(facts.path)) if ids_input(specs) else None
    if data is not None and tokenizer is None:
        raise UsageError(f"{data} holds texts but {facts.source} has no tokenizer.json beside it: give --data FILE.npz")
    n_rows = batch_rows(specs, workload)
    if tokenizer is None:
        made = (fill(specs, n_rows, length, random) for length in _arrivals(lengths, 1, random))
        return Traffic(list(made), _generated(specs, lengths, random), "generated", n_rows)
    pools, texts = builtin_pools(tokenizer)
    samples: Iterator[Batch] | None = None
    if data is not None:
        rows = read_rows(data)
        pools, texts = [[row.text for row in rows]], "data"
        samples = _from_rows(rows, tokenizer, specs, max(lengths), random)
    composer = Composer(tokenizer, pools, workload.seed)

    def batch_of(sizes: Sequence[int]) -> Batch:
        text = tokenizer.pad([composer.row(size) for size in sizes])
        return fill(specs, len(sizes), max(sizes), random, text)

    arrivals = _arrivals(lengths, n_rows, random)
    batches = [batch_of(arrivals[start : start + n_rows]) for start in range(0, len(arrivals), n_rows)]
    return Traffic(batches, samples or _composed(batch_of, specs, lengths), texts, n_rows)


def batch_rows(specs: Sequence[TensorSpec], workload: Workload) -> int:
    """Return the rows of one batch: the graph's fixed batch axis, else what the workload asks.

    Raises:
        UsageError: Both say something and differ.
    """
    main = ids_input(specs) or specs[0].name
    shape = next(spec.shape for spec in specs if spec.name == main)
    fixed = shape[0] if shape else None
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
    n_rows = batch_rows(specs, Workload(task="forward"))
    index = 0
    while True:
        yield batch_of([lengths[index % len(lengths)]] * n_rows)
        index += 1


def _generated(specs: Sequence[TensorSpec], lengths: Sequence[int], random: np.random.Generator) -> Iterator[Batch]:
    n_rows = batch_rows(specs, Workload(task="forward"))
    index = 0
    while True:
        yield fill(specs, n_rows, lengths[index % len(lengths)], random)
        index += 1


def _from_rows(
    rows: Sequence[Row],
    tokenizer: TextTokenizer,
    specs: Sequence[TensorSpec],
    longest: int,
    random: np.random.Generator,
) -> Iterator[Batch]:
    n_rows = batch_rows(specs, Workload(task="forward"))
    order = random.permutation(len(rows))
    for start in range(0, len(order) - n_rows + 1, n_rows):
        text = tokenizer.encode([rows[int(i)].text for i in order[start : start + n_rows]], longest)
        yield fill(specs, n_rows, text["input_ids"].shape[1], random, text)


def arrays_traffic(
    arrays: Batch,
    specs: Sequence[TensorSpec],
    workload: Workload,
    random: np.random.Generator,
    rest: Callable[[int], Batch] | None = None,
) -> Traffic:
    """Make traffic of the user's arrays, whose first axis counts rows; `rest` gives the other inputs for so many rows.

    Raises:
        UsageError: An array is no input, or of another dtype or rank, or there are too few rows.
    """
    by_name = {spec.name: spec for spec in specs}
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
    one = batch_rows(specs, Workload(task="forward"))
    samples = (slice_of(int(start) * one, one) for start in random.permutation(n_total // one))
    return Traffic([slice_of(start, n_rows) for start in starts], samples, "data", n_rows)
