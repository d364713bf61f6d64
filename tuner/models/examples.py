"""Traffic made of a model's own example inputs; it opens no model.

Floats are drawn with the example's mean and spread, whole numbers are its own in another order, the rest stays.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from tuner.errors import UsageError
from tuner.models.data import read_arrays, read_columns
from tuner.models.traffic import BATCHES_PER_LENGTH, Batch, Traffic, arrays_traffic
from tuner.records.model import TensorSpec
from tuner.records.workload import Workload


def asked_inputs(specs: Sequence[TensorSpec], workload: Workload) -> tuple[TensorSpec, ...]:
    """Return the inputs, their first axis free where the workload asks for other batches than the example's."""
    rows = example_rows(specs)
    if rows is None or workload.batch_size in {1, rows}:
        return tuple(specs)
    return tuple(
        spec.model_copy(update={"shape": (None, *spec.shape[1:])}) if spec.shape[:1] == (rows,) else spec
        for spec in specs
    )


def example_rows(specs: Sequence[TensorSpec]) -> int | None:
    """Return the rows of an example: the first axis of its first input that has axes; None if none has."""
    return next((spec.shape[0] for spec in specs if spec.shape), None)


def example_traffic(
    examples: Batch,
    inputs: Sequence[TensorSpec],
    workload: Workload,
    data: str | None,
    source: str,
    *,
    has_metric: bool = False,
) -> Traffic:
    """Return the traffic of a model that brings `examples`; the first sample is the example itself.

    Arrays of one value a row that are no inputs are for the metric, where there is one.

    Raises:
        UsageError: The data are not arrays, or do not fit.
    """
    random = np.random.default_rng(workload.seed)
    rows = next((array.shape[0] for array in examples.values() if array.ndim), 1)
    free = {spec.name for spec in inputs if 0 in spec.free_axes}
    n_rows = workload.batch_size if free else rows
    if data is not None:
        if not data.endswith(".npz"):
            raise UsageError(f"{data} holds texts, {source} takes tensors: give --data FILE.npz")
        columns = read_columns(data, [spec.name for spec in inputs]) if has_metric else ()
        return arrays_traffic(
            read_arrays(data), inputs, workload, random, lambda count: resized(examples, free, count), columns=columns
        )
    batches = [_alike(resized(examples, free, n_rows), random) for _ in range(BATCHES_PER_LENGTH)]
    return Traffic(batches, _samples(resized(examples, free, 1), random), "examples", n_rows)


def resized(batch: Batch, free: set[str], rows: int) -> Batch:
    """Return `batch` with `rows` rows in the inputs named in `free`: its own again and again, or the first of them."""
    return {
        name: np.ascontiguousarray(np.resize(array, (rows, *array.shape[1:]))) if name in free else array
        for name, array in batch.items()
    }


def _samples(examples: Batch, random: np.random.Generator) -> Iterator[Batch]:
    yield examples
    while True:
        yield _alike(examples, random)


def _alike(examples: Batch, random: np.random.Generator) -> Batch:
    return {name: _varied(array, random) for name, array in examples.items()}


def _varied(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return another array of the same shape and dtype; a constant one (a mask, a state, a rate) as it is."""
    if not array.ndim or array.size == 0 or (array == array.flat[0]).all():
        return array
    if array.dtype.kind == "f":
        drawn = random.standard_normal(array.shape) * array.std() + array.mean()
        return np.asarray(drawn, array.dtype)
    if array.dtype.kind in "iu":
        return np.asarray(random.permutation(array.ravel()).reshape(array.shape))
    return array
