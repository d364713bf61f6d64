"""Prepares a workload in a process of its own: timed batches, fidelity samples and the float32 reference's outputs."""

import itertools
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tuner.errors import UsageError
from tuner.messages import Prepare
from tuner.models.examples import asked_inputs, example_traffic
from tuner.models.filling import LENGTH_CANDIDATES, fill, ids_input, sample_rows
from tuner.models.fitting import check_lengths
from tuner.models.judging import judge_reference, main_output, mask_of
from tuner.models.metrics import MOST_TEXTS, is_paired, label_names, targets_of
from tuner.models.pooling import pool
from tuner.models.references import Batch, Reference, open_reference
from tuner.models.scoring import import_function, write_rows
from tuner.models.tasks import METHODS
from tuner.models.traffic import Traffic, batch_rows, make_traffic
from tuner.models.wording import one_line
from tuner.records.model import ModelFacts, Pooling, Prepared, TensorSpec
from tuner.records.workload import Workload

LEAST_SAMPLES = 16
TOKEN_SAMPLES = 16
"""Samples whose full token outputs are kept for the per-token figures."""
MOST_REFERENCE_BYTES = 1 << 30
SAME_WITHIN = 0.01
"""Largest difference of two answers to the same inputs, as a share of the largest value."""


class Answers(NamedTuple):
    """The samples that were run and what is kept of the reference's outputs, arrays as they are written."""

    samples: list[Batch]
    arrays: dict[str, np.ndarray]
    outputs: tuple[str, ...]


def prepare(command: Prepare) -> tuple[Prepared, float]:
    """Write ``inputs.npz``, ``samples.npz``, ``references.npz`` and ``prepared.json`` into the command's directory.

    Returns:
        The record, and the median seconds of one timed batch on the reference.

    Raises:
        UsageError: The model's files, the data or the lengths cannot work.
        Unsupported: No engine here opens the model.
    """
    start = time.perf_counter()
    facts, workload, directory = command.model, command.workload, Path(command.directory)
    check_lengths(facts, workload)
    if command.metric is not None:
        import_function(command.metric, command.code_dir)
    reference = open_reference(facts)
    if not reference.inputs:
        raise UsageError(f"{facts.source} takes no inputs: there is nothing to tune")
    inputs = reference.inputs
    if reference.examples is None:
        lengths = _lengths(reference, workload, command.data)
        traffic = make_traffic(facts, workload, inputs, lengths, command.data, metric=command.metric)
    else:
        inputs = asked_inputs(inputs, workload)
        has_metric = command.metric is not None
        traffic = example_traffic(
            reference.examples, inputs, workload, command.data, facts.source, has_metric=has_metric
        )
    call_s = _call_s(reference, traffic.batches[0])
    answers = _answer(reference, traffic, facts, command)
    prepared = Prepared(
        model=facts,
        workload=workload,
        inputs=inputs,
        outputs=answers.outputs,
        n_batches=len(traffic.batches),
        n_samples=len(answers.samples),
        items_per_batch=traffic.items_per_batch,
        method=METHODS[facts.task],
        reference=reference.name,
        texts=traffic.texts,
        prepare_s=time.perf_counter() - start,
        metric=command.metric,
        code_dir=command.code_dir,
    )
    _save(directory / "inputs.npz", traffic.batches)
    _save(directory / "samples.npz", answers.samples)
    np.savez(directory / "references.npz", allow_pickle=False, **answers.arrays)
    if command.metric is not None:
        prepared = _with_metric(prepared, directory, traffic, command)
    (directory / "prepared.json").write_text(prepared.to_json(indent=1))
    return prepared, call_s


def _with_metric(prepared: Prepared, directory: Path, traffic: Traffic, command: Prepare) -> Prepared:
    """Write the rows that the samples are, score the reference on them, and return the record with its figure.

    Raises:
        UsageError: Nothing can be lost of that figure, or the metric is at fault.
    """
    metric, data = command.metric, str(command.data)
    assert metric is not None
    if not traffic.rows:
        raise UsageError(
            f"--metric {metric.name}: {data} has no rows for it beside the inputs of {command.model.source}"
        )
    n_texts = prepared.n_samples * sample_rows(prepared.inputs)
    rows = traffic.rows[: n_texts // (1 + is_paired(metric, traffic.rows, command.model.task))]
    targets = targets_of(metric, rows, data, label_names(Path(command.model.path)))
    write_rows(directory, metric, rows, targets, task=command.model.task)
    figure = judge_reference(directory, prepared)
    return prepared.model_copy(update={"metric_reference": figure, "n_rows": len(rows)})


def _lengths(reference: Reference, workload: Workload, data: str | None) -> tuple[int, ...]:
    """Return the sizes of the free axis: the workload's for token ids, else the first default the graph accepts.

    Raises:
        UsageError: The graph accepts none.
    """
    specs = reference.inputs
    if ids_input(specs) is not None or (data is not None and data.endswith(".npz")):
        return workload.lengths
    random = np.random.default_rng(workload.seed)
    refusal = "its outputs are not finite"
    for length in LENGTH_CANDIDATES:
        batch = fill(specs, batch_rows(specs, workload), length, random)
        try:
            outputs = reference.run(batch)
        except Exception as error:  # noqa: BLE001 - engines' exceptions have no common base; the next size may work
            refusal = one_line(error)
            continue
        if all(np.isfinite(array).all() for array in outputs.values() if array.dtype.kind == "f"):
            return (length,)
    raise UsageError(f"made-up inputs ({_listed(specs)}) do not run: {refusal}: give --data FILE.npz")


def _listed(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(f"{spec.name} {spec.dtype}{list(spec.shape)}" for spec in specs)


def _call_s(reference: Reference, batch: Batch) -> float:
    """Return the median seconds of three calls after one that is not counted.

    Raises:
        UsageError: The reference refuses the batch, or answers something else each time.
    """
    times: list[float] = []
    answers: list[Batch] = []
    for _ in range(4):
        start = time.perf_counter()
        try:
            answers.append(reference.run(batch))
        except Exception as error:
            shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in batch.items())
            raise UsageError(f"the model refuses inputs {shapes}: {one_line(error)}") from error
        times.append(time.perf_counter() - start)
    changing = [name for name in answers[0] if _changes(answers[0][name], answers[-1][name])]
    if changing:
        raise UsageError(
            f"{reference.name} answers other values of {', '.join(changing)} for the same inputs each time: nothing "
            "can be compared with them; export the model without dropout, random operators and state"
        )
    return statistics.median(times[1:])


def _changes(first: np.ndarray, last: np.ndarray) -> bool:
    """Say whether two answers to the same inputs differ by more than the order of additions explains."""
    if first.shape != last.shape:
        return True
    if first.dtype.kind != "f":
        return not np.array_equal(first, last)
    largest = float(np.abs(first[np.isfinite(first)]).max(initial=0.0))
    return not np.allclose(first, last, rtol=0.0, atol=SAME_WITHIN * largest, equal_nan=True)


def _answer(reference: Reference, traffic: Traffic, facts: ModelFacts, command: Prepare) -> Answers:
    """Run the reference on as many samples as the budget allows, never under 16 where the data have as many."""
    samples: list[Batch] = []
    kept: dict[str, np.ndarray] = {}
    vectors: list[np.ndarray] = []
    outputs: tuple[str, ...] = ()
    n_bytes = 0
    start = time.perf_counter()
    least = LEAST_SAMPLES if command.metric is None else 2 * LEAST_SAMPLES
    most = MOST_TEXTS if command.metric is not None else max(command.max_samples, LEAST_SAMPLES)
    for index, sample in enumerate(itertools.islice(traffic.samples, most)):
        spent = time.perf_counter() - start > command.sample_budget_s or n_bytes > MOST_REFERENCE_BYTES
        if index >= least and spent:
            break
        answer = reference.run(sample)
        _refuse_nonfinite(answer, facts)
        outputs = outputs or _ordered(tuple(answer), answer, facts)
        samples.append(sample)
        if METHODS[facts.task] == "embedding":
            tokens = answer[outputs[0]]
            vectors.append(pool(tokens, mask_of(sample), facts.pooling or Pooling()))
            if index >= TOKEN_SAMPLES:
                continue
        for name in outputs:
            kept[f"{index}.{name}"] = answer[name]
            n_bytes += answer[name].nbytes
    if not samples:
        raise UsageError("the data hold fewer rows than one sample takes: give more")
    if vectors:
        kept["vectors"] = np.stack(vectors)
    return Answers(samples, kept, outputs)


def _ordered(names: tuple[str, ...], answer: Batch, facts: ModelFacts) -> tuple[str, ...]:
    """Return the outputs that are judged: one for embeddings and classes, all for other graphs."""
    if METHODS[facts.task] == "graph":
        return names
    return (main_output(names, answer, METHODS[facts.task]),)


def _refuse_nonfinite(answer: Batch, facts: ModelFacts) -> None:
    for name, array in answer.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise UsageError(
                f"{facts.source}: output {name!r} is not finite in float32: nothing can be compared with it"
            )


def _save(path: Path, batches: Sequence[Batch]) -> None:
    arrays = {f"{index}.{name}": array for index, batch in enumerate(batches) for name, array in batch.items()}
    np.savez(path, allow_pickle=False, **arrays)
