"""Judges the outputs of a loaded model against the stored reference; figures come from measure.fidelity."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tuner.measure.fidelity import (
    check_output,
    compare_classes,
    compare_embedding,
    compare_graph,
    misses_default_limit,
    verify_samples,
)
from tuner.messages import CheckFidelity, FidelityDone
from tuner.models.filling import sample_rows
from tuner.models.pooling import pool
from tuner.models.scoring import Outputs, Scorer, read_rows_file, with_loss
from tuner.records.measurement import Fidelity
from tuner.records.model import Pooling, Prepared

Batch = dict[str, np.ndarray]
TOKEN_RANK = 3
PREFERRED = {"embedding": ("last_hidden_state", "token_embeddings"), "classes": ("logits",)}


def judge(directory: Path, prepared: Prepared, run: Callable[[Batch], Batch], command: CheckFidelity) -> FidelityDone:
    """Run fidelity samples through `run` and compare them: a quick look first, then all that were asked.

    Where the user has a metric, the quick look ends what is already shown to lose more than is allowed.

    Args:
        directory: The prepared workload.
        prepared: Its record.
        run: The session's call.
        command: How many samples.

    Raises:
        Incorrect: An output is missing, not finite, or of another shape or kind than the reference's.
        UsageError: The user's metric raises or returns no number.
    """
    samples = read_numbered(directory / "samples.npz")
    references = read_numbered(directory / "references.npz")
    n = min(command.max_samples, len(samples))
    answers: list[Batch] = []
    metric = prepared.metric
    rows = None if metric is None else read_rows_file(directory)
    scorer = None if metric is None or rows is None else Scorer(metric, rows, prepared.code_dir)

    def figures(count: int) -> Fidelity:
        answers.extend(_kept(run(samples[index]), prepared) for index in range(len(answers), count))
        fidelity = _compare(prepared, samples[:count], references, answers)
        if scorer is None or rows is None:
            return fidelity
        before = _by_row(prepared, _reference_parts(prepared, references[:count]), rows.texts_per_row)
        after = _by_row(prepared, _parts(prepared, samples[:count], answers), rows.texts_per_row)
        return with_loss(fidelity, scorer.loss(before, after))

    def is_hopeless(fidelity: Fidelity) -> bool:
        if metric is None:
            return misses_default_limit(fidelity)
        return fidelity.details.get("metric_loss_low", metric.max_loss) > metric.max_loss

    verified = verify_samples(n, command.quick_samples, figures, is_hopeless)
    return FidelityDone(fidelity=verified.fidelity, stopped_early=verified.stopped_early)


def judge_reference(directory: Path, prepared: Prepared) -> float:
    """Return the reference's own figure of the user's metric.

    Raises:
        UsageError: It is zero or chance, so that nothing can be lost; or the metric is at fault.
    """
    assert prepared.metric is not None
    rows = read_rows_file(directory)
    references = read_numbered(directory / "references.npz")
    outputs = _by_row(prepared, _reference_parts(prepared, references), rows.texts_per_row)
    return Scorer(prepared.metric, rows, prepared.code_dir).check_reference(outputs)


def _reference_parts(prepared: Prepared, references: Sequence[Batch]) -> list[Any]:
    if prepared.method == "graph":
        return list(references)
    name = "vectors" if prepared.method == "embedding" else prepared.outputs[0]
    return [reference[name] for reference in references]


def _parts(prepared: Prepared, samples: Sequence[Batch], answers: Sequence[Batch]) -> list[Any]:
    """Return what is scored of every sample: its vectors, its logits, or all outputs of a plain graph."""
    if prepared.method == "graph":
        return list(answers)
    outputs = [answer[prepared.outputs[0]] for answer in answers]
    return _vectors(prepared, samples, outputs) if prepared.method == "embedding" else outputs


def _by_row(prepared: Prepared, parts: Sequence[Any], texts_per_row: int) -> Outputs:
    """Return one entry a row of the data; the texts of a pair lie next to each other."""
    if prepared.method == "graph":
        n = sample_rows(prepared.inputs)
        each: list[Any] = [
            {name: array[row] if array.ndim and len(array) == n else array for name, array in part.items()}
            for part in parts
            for row in range(n)
        ]
    else:
        each = [row for part in parts for row in part]
    n_rows = len(each) // texts_per_row
    if any(np.shape(row) != np.shape(each[0]) for row in each) or prepared.method == "graph":
        return each if texts_per_row == 1 else [each[2 * i : 2 * i + 2] for i in range(n_rows)]
    values = np.stack(each[: n_rows * texts_per_row])
    return values if texts_per_row == 1 else values.reshape(n_rows, texts_per_row, *values.shape[1:])


def _vectors(prepared: Prepared, samples: Sequence[Batch], outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    pooling = prepared.model.pooling or Pooling()
    return [pool(output, mask_of(sample), pooling) for sample, output in zip(samples, outputs, strict=True)]


def _kept(answer: Batch, prepared: Prepared) -> Batch:
    """Copy what is judged: an engine may reuse the memory of its outputs."""
    return {name: np.array(answer[name]) for name in prepared.outputs if name in answer}


def _compare(
    prepared: Prepared, samples: Sequence[Batch], references: Sequence[Batch], answers: Sequence[Batch]
) -> Fidelity:
    if prepared.method == "graph":
        return compare_graph(list(references[: len(answers)]), list(answers))
    name = prepared.outputs[0]
    outputs = [answer.get(name, np.empty(0, np.float32)) for answer in answers]
    if prepared.method == "classes":
        expected = [reference[name] for reference in references[: len(answers)]]
        return compare_classes(expected, outputs)
    n_tokens = 0
    for reference, output in zip(references, outputs, strict=False):
        if name not in reference:
            break
        check_output(name, reference[name], output)
        n_tokens += 1
    vectors = _vectors(prepared, samples, outputs)
    expected = [reference["vectors"] for reference in references[: len(answers)]]
    tokens = None
    if outputs[0].ndim == TOKEN_RANK:
        masks = [mask_of(sample) for sample in samples[:n_tokens]]
        tokens = (
            [_unpadded(reference[name], mask) for reference, mask in zip(references[:n_tokens], masks, strict=True)],
            [_unpadded(output, mask) for output, mask in zip(outputs[:n_tokens], masks, strict=True)],
        )
    return compare_embedding(expected, vectors, tokens=tokens)


def _unpadded(tokens: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Return (n, d): the token vectors that the mask counts."""
    kept: np.ndarray = tokens.reshape(-1, tokens.shape[-1]) if mask is None else tokens[mask > 0]
    return kept


def mask_of(batch: Batch) -> np.ndarray | None:
    """Return the attention mask among the inputs, (batch, length), or None."""
    names = [name for name in batch if "mask" in name.lower()]
    return batch[names[0]] if names else None


def main_output(names: Sequence[str], answer: Batch, method: str) -> str:
    """Return the output that is judged: the usual name, else the first of the highest rank up to 3."""
    preferred = [name for name in PREFERRED.get(method, ()) if name in names]
    if preferred:
        return preferred[0]
    return max(names, key=lambda name: (answer[name].ndim <= TOKEN_RANK, answer[name].ndim, -list(names).index(name)))


def read_numbered(path: Path) -> list[Batch]:
    """Read arrays named ``<number>.<name>``; an array without a number is spread over its first axis."""
    batches: dict[int, Batch] = {}
    with np.load(path, allow_pickle=False) as arrays:
        for key in arrays.files:
            number, dot, name = key.partition(".")
            if dot:
                batches.setdefault(int(number), {})[name] = arrays[key]
            else:
                for index, part in enumerate(arrays[key]):
                    batches.setdefault(index, {})[key] = part
    return [batches[index] for index in sorted(batches)]
