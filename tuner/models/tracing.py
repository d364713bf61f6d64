"""What every tool that traces a model is given (module, example, free axes), and the check of the graph it made.

Text models get random ids of other shapes than the traffic's; all others the prepared inputs themselves.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from tuner.models.examples import resized
from tuner.models.judging import read_numbered
from tuner.models.variants import answer_of
from tuner.records.model import Prepared

if TYPE_CHECKING:
    import torch

    from tuner.models.live import Attention, Live

TRACED = (2, 16)
CHECKED = ((1, 5), (3, 33), (1, 16))
"""Batch and length: other sizes than traced, among them batch 1, a short and a longer row."""
LARGEST_ERROR = 1e-3
MOST_CHECKED = 3
AXES = ("batch", "length")
Batch = dict[str, np.ndarray]


class Subject(NamedTuple):
    """A model to be traced.

    Attributes:
        module: Takes arrays by name and answers a dict.
        example: What it is traced with.
        outputs: Names in the order it answers.
        free: Axes of each input that stay free.
        checks: Batches that the graph is compared with the module on.
    """

    module: "torch.nn.Module"
    example: Batch
    outputs: tuple[str, ...]
    free: dict[str, tuple[int, ...]]
    checks: list[Batch]

    @property
    def positional(self) -> "torch.nn.Module":
        """The module that takes and answers tuples, in the order of the names."""
        return positional(self.module, tuple(self.example), self.outputs)


def open_subject(inputs: Mapping[str, Path], attention: "Attention") -> Subject:
    """Open the model of a build step in float32, as whatever converts it needs it.

    Args:
        inputs: Of the step; ``prepared`` is the prepared workload.
        attention: transformers' implementation that is traced.

    Raises:
        Unsupported: It cannot be opened so.
    """
    from tuner.models.live import open_live

    directory = inputs["prepared"]
    prepared = Prepared.from_json((directory / "prepared.json").read_bytes(), source="prepared.json")
    live = open_live(prepared.model, "float32", attention)
    example, checks = _text_batches(live, prepared) if takes_text(live) else _own_batches(prepared, directory)
    free = {spec.name: spec.free_axes for spec in prepared.inputs}
    return Subject(live.module, example, tuple(answer_of(live.module, example)), free, checks)


def takes_text(live: "Live") -> bool:
    """Say whether a model of transformers takes token ids."""
    return live.configuration is not None and any(spec.name == "input_ids" for spec in live.inputs)


def _text_batches(live: "Live", prepared: Prepared) -> tuple[Batch, list[Batch]]:
    names = tuple(spec.name for spec in live.inputs)
    limits = (int(getattr(live.configuration, "vocab_size", 100) or 100), prepared.model.max_length or 512)
    random = np.random.default_rng(0)
    example = padded_batch(TRACED, names, limits, random)
    return example, [padded_batch(shape, names, limits, random) for shape in CHECKED]


def _own_batches(prepared: Prepared, directory: Path) -> tuple[Batch, list[Batch]]:
    """Return prepared inputs: two rows to trace with where rows are free, one and three to check."""
    free = {spec.name for spec in prepared.inputs if 0 in spec.free_axes}
    first = read_numbered(directory / "inputs.npz")[0]
    checks = read_numbered(directory / "samples.npz")[:MOST_CHECKED]
    if not free:
        return first, [first, *checks]
    return resized(first, free, 2), [*checks, resized(first, free, 1), resized(first, free, 3)]


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
    """Return a module that takes and answers tuples, in the order of the names; exporters name those reliably.

    Its floating outputs are float32 where they are narrower.
    """
    import torch

    narrow = (torch.bfloat16, torch.float16)

    class Positional(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, *tensors: "torch.Tensor") -> tuple["torch.Tensor", ...]:
            answer = self.inner(**dict(zip(names, tensors, strict=True)))
            return tuple(
                tensor.float() if tensor.dtype in narrow else tensor for tensor in (answer[name] for name in outputs)
            )

    return cast("torch.nn.Module", Positional().eval())


def differences(
    found: Mapping[str, np.ndarray], expected: Batch, batch: Batch, largest: float = LARGEST_ERROR
) -> str | None:
    """Return how a graph's answers differ from the module's where the mask counts, None if they do not."""
    shapes = ", ".join(str(array.shape) for array in batch.values())
    mask = batch.get("attention_mask")
    for name, right in expected.items():
        if name not in found or found[name].shape != right.shape:
            return f"has another shape of output {name} than PyTorch on inputs {shapes}"
        left, wanted = found[name], right
        if mask is not None and right.shape[:2] == mask.shape:
            left, wanted = left[mask > 0], wanted[mask > 0]
        if wanted.dtype.kind != "f":
            left, wanted = left.astype(np.float64), wanted.astype(np.float64)
        error_ratio = float(np.abs(left - wanted).max(initial=0) / max(float(np.abs(wanted).max(initial=0)), 1e-6))
        if not error_ratio <= largest:
            return f"differs from PyTorch by {error_ratio:.2g} on inputs {shapes}: {name}"
    return None
