"""Example batches for whatever traces a text model, and the check of the graph that came out against the module."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

if TYPE_CHECKING:
    import torch

TRACED = (2, 16)
CHECKED = ((1, 5), (3, 33), (1, 16))
"""Batch and length: other sizes than traced, among them batch 1, a short and a longer row."""
LARGEST_ERROR = 1e-3
Batch = dict[str, np.ndarray]


def answer_of(module: "torch.nn.Module", batch: Batch) -> Batch:
    """Return what a flattened module answers."""
    import torch

    with torch.inference_mode():
        answer = module(**{name: torch.from_numpy(array) for name, array in batch.items()})
    return {name: tensor.numpy() for name, tensor in answer.items()}


def vocabulary_of(module: "torch.nn.Module") -> int:
    """Return how many token ids there are."""
    return int(getattr(module.inner.config, "vocab_size", 100) or 100)


def padded_batch(
    shape: tuple[int, int], names: tuple[str, ...], limits: tuple[int, int], random: np.random.Generator
) -> Batch:
    """Make a batch in which every second row is padded to two thirds; `limits` are vocabulary and longest row."""
    vocabulary, longest = limits
    rows, length = shape[0], min(shape[1], longest)
    mask = np.ones((rows, length), np.int64)
    mask[1::2, max(1, 2 * length // 3) :] = 0
    ids = random.integers(min(4, vocabulary - 1), vocabulary, (rows, length))
    arrays = {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": np.zeros_like(mask)}
    return {name: arrays[name] for name in names}


def positional(module: "torch.nn.Module", names: tuple[str, ...], outputs: tuple[str, ...]) -> "torch.nn.Module":
    """Return a module that takes and answers tuples, in the order of the names; exporters name those reliably."""
    import torch

    class Positional(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, *tensors: "torch.Tensor") -> tuple["torch.Tensor", ...]:
            answer = self.inner(**dict(zip(names, tensors, strict=True)))
            return tuple(answer[name] for name in outputs)

    return cast("torch.nn.Module", Positional().eval())


def differences(
    found: Mapping[str, np.ndarray], expected: Batch, batch: Batch, largest: float = LARGEST_ERROR
) -> str | None:
    """Return how a graph's answers differ from the module's where the mask counts, None if they do not."""
    shape = batch["input_ids"].shape
    for name, right in expected.items():
        if name not in found or found[name].shape != right.shape:
            return f"has another shape of output {name} than PyTorch on inputs {shape}"
        left, wanted = found[name], right
        if right.shape[:2] == shape:
            counted = batch["attention_mask"] > 0 if "attention_mask" in batch else np.ones(shape, bool)
            left, wanted = left[counted], wanted[counted]
        error_ratio = float(np.abs(left - wanted).max() / max(float(np.abs(wanted).max()), 1e-6))
        if not error_ratio <= largest:
            return f"differs from PyTorch by {error_ratio:.2g} on inputs {shape}: {name}"
    return None
