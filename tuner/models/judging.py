"""Judges the outputs of a loaded model against the stored reference; figures come from measure.fidelity."""

from collections.abc import Callable, Sequence
from pathlib import Path

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
from tuner.models.pooling import pool
from tuner.records.measurement import Fidelity
from tuner.records.model import Pooling, Prepared

Batch = dict[str, np.ndarray]
TOKEN_RANK = 3
PREFERRED = {"embedding": ("last_hidden_state", "token_embeddings"), "classes": ("logits",)}


def judge(directory: Path, prepared: Prepared, run: Callable[[Batch], Batch], command: CheckFidelity) -> FidelityDone:
    """Run fidelity samples through `run` and compare them: a quick look first, then all that were asked.

    Args:
        directory: The prepared workload.
        prepared: Its record.
        run: The session's call.
        command: How many samples.

    Raises:
        Incorrect: An output is missing, not finite, or of another shape or kind than the reference's.
    """
    samples = read_numbered(directory / "samples.npz")
    references = read_numbered(directory / "references.npz")
    n = min(command.max_samples, len(samples))
    answers: list[Batch] = []

    def figures(count: int) -> Fidelity:
        answers.extend(_kept(run(samples[index]), prepared) for index in range(len(answers), count))
        return _compare(prepared, samples[:count], references, answers)

    verified = verify_samples(n, command.quick_samples, figures, misses_default_limit)
    return FidelityDone(fidelity=verified.fidelity, stopped_early=verified.stopped_early)


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
    pooling = prepared.model.pooling or Pooling()
    n_tokens = 0
    for reference, output in zip(references, outputs, strict=False):
        if name not in reference:
            break
        check_output(name, reference[name], output)
        n_tokens += 1
    vectors = [pool(output, mask_of(sample), pooling) for sample, output in zip(samples, outputs, strict=True)]
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
