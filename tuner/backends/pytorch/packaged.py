"""Runs packages of machine code that a build step compiled ahead of time: no tracing, no compiler, open in seconds.

A text model's graph of a fixed shape serves smaller batches too, padded (rows repeated, tokens masked) and cut again;
what fits no graph runs in eager PyTorch, which is loaded when that first happens.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import torch

from tuner.backends.base import Batch, Context
from tuner.backends.pytorch import threads
from tuner.backends.pytorch.settings import PyTorchSettings
from tuner.errors import Unsupported
from tuner.models.wording import one_line
from tuner.records.package import Package

Call = Callable[[list[torch.Tensor]], list[torch.Tensor]]
MASK = "attention_mask"
MATRIX = 2


class Bucket(NamedTuple):
    """One loaded graph; None: of any shapes."""

    shapes: tuple[tuple[int, ...], ...] | None
    call: Call


class PackagedSession:
    """Loaded graphs of one package."""

    def __init__(self, directory: Path, context: Context, settings: PyTorchSettings) -> None:
        threads.apply(settings)
        self._context = context
        self._settings = settings
        self._package = Package.from_json((directory / "package.json").read_bytes(), source="package.json")
        self.input_names = self._package.inputs
        self._buckets = [Bucket(shape.shapes, _load(directory / shape.file)) for shape in self._package.shapes]
        self._exact = {bucket.shapes: bucket.call for bucket in self._buckets}
        self._eager: Callable[[Batch], Batch] | None = None
        self._n_padded = 0

    def run(self, batch: Batch) -> Batch:
        """Run one batch, in the graph of its shape where there is one."""
        call = self._exact.get(tuple(batch[name].shape for name in self.input_names))
        if call is None:
            return self._run_fitted(batch)
        return self._named(call([torch.from_numpy(batch[name]) for name in self.input_names]))

    def effective(self) -> dict[str, object]:
        """Return thread counts as torch says them, and what the package says of its code."""
        unverified = ["attention"] if self._settings.attention is not None else []
        return {
            **threads.in_force(),
            "precision": self._package.computes or self._package.precision,
            "attention": None,
            "compile_s": self._package.compile_s,
            "n_graphs": len(self._buckets),
            "n_padded_calls": self._n_padded,
            "has_eager_calls": self._eager is not None,
            "unverified": unverified,
        }

    def close(self) -> None:
        """Drop the graphs."""
        self._buckets, self._exact, self._eager = [], {}, None

    def _run_fitted(self, batch: Batch) -> Batch:
        """Pad to the smallest graph that holds the batch, or run eagerly."""
        shape = batch[self.input_names[0]].shape
        fitting = [bucket for bucket in self._buckets if _holds(bucket, shape, can_pad=MASK in batch)]
        if not fitting:
            return self._run_eager(batch)
        bucket = min(fitting, key=lambda bucket: math.prod(bucket.shapes[0]) if bucket.shapes else 0)
        if bucket.shapes is None:
            return self._named(bucket.call([torch.from_numpy(batch[name]) for name in self.input_names]))
        self._n_padded += 1
        wanted, (rows, length) = bucket.shapes[0], shape
        answer = self._named(bucket.call([torch.from_numpy(_padded(batch[name], wanted)) for name in self.input_names]))
        return {
            name: array[:rows, :length] if name in self._package.long_outputs else array[:rows]
            for name, array in answer.items()
        }

    def _named(self, answer: list[torch.Tensor]) -> Batch:
        return {name: tensor.numpy() for name, tensor in zip(self._package.outputs, answer, strict=True)}

    def _run_eager(self, batch: Batch) -> Batch:
        if self._eager is None:
            from tuner.backends.pytorch.live import LiveSession

            asked = {"precision": self._package.precision, "attention": self._settings.attention}
            self._eager = LiveSession(self._context, PyTorchSettings.model_validate(asked)).run
        return self._eager(batch)


def _load(file: Path) -> Call:
    """Return the call of one package.

    Raises:
        Unsupported: The library refuses the file.
    """
    try:
        with torch.inference_mode():
            loaded = torch._inductor.aoti_load_package(str(file))  # noqa: SLF001 - documented under this name
    except (RuntimeError, OSError, ValueError) as error:
        raise Unsupported(f"torch {torch.__version__} cannot load {file.name}: {one_line(error)}") from error
    return cast("Call", loaded.loader.boxed_run)


def _holds(bucket: Bucket, shape: tuple[int, ...], *, can_pad: bool) -> bool:
    """Say whether a batch of masked texts (rows, length) fits into a graph; others only where every shape does."""
    if bucket.shapes is None:
        return True
    texts = {shape, *bucket.shapes}
    if not can_pad or any(len(one) != MATRIX for one in texts) or len(set(bucket.shapes)) != 1:
        return False
    rows, length = bucket.shapes[0]
    return rows >= shape[0] and length >= shape[1]


def _padded(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return `array` (rows, length) grown to `shape`: zeros after each row (masked), then the last row again."""
    rows, length = shape
    longer = np.pad(array, ((0, 0), (0, length - array.shape[1])))
    return np.pad(longer, ((0, rows - len(array)), (0, 0)), mode="edge")
