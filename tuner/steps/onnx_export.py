"""Exports a Hugging Face model to ``model.onnx``, batch and length free, checked on shapes it did not trace."""

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import numpy as np

from tuner.errors import Unsupported
from tuner.models.tracing import (
    CHECKED,
    LARGEST_ERROR,
    TRACED,
    Batch,
    answer_of,
    differences,
    padded_batch,
    positional,
    vocabulary_of,
)
from tuner.models.wording import one_line
from tuner.plugins import installed_versions, space_file
from tuner.records import base
from tuner.records.model import Prepared

if TYPE_CHECKING:
    import torch

__all__ = ["OnnxExport", "OnnxExportSettings"]

OPSET = 20
TORCHSCRIPT_OPSET = 17
EXTERNAL_DATA_BYTES = 1 << 30
"""Weights above this lie beside the file: protobuf ends at 2 GiB, and the graph needs room too."""


class OnnxExportSettings(base.Settings):
    """How the graph is made.

    Attributes:
        attention: The implementation that is traced; ``eager`` gives the plainest graph.
        exporter: PyTorch's exporter; ``torchscript`` is the older one.
    """

    attention: Literal["sdpa", "eager"] = "eager"
    exporter: Literal["dynamo", "torchscript"] = "dynamo"


class OnnxExport:
    """The step."""

    name: ClassVar[str] = "onnx_export"
    Settings: ClassVar[type[base.Settings]] = OnnxExportSettings
    after: ClassVar[tuple[str, ...]] = ()
    build_guess_s: ClassVar[tuple[float, float]] = (3.0, 100.0)
    output: ClassVar[str] = "onnx"

    def installed(self) -> dict[str, str] | None:
        """Return versions of what exports."""
        return installed_versions("torch", "transformers", "onnx", "onnxscript")

    def space(self) -> Traversable:
        """Return the space of its settings."""
        return space_file("onnx_export.toml")

    def build(self, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write ``model.onnx`` (and ``model.onnx.data`` for large models).

        Raises:
            Unsupported: The model cannot be exported so, or the graph answers otherwise than PyTorch.
        """
        from tuner.models.live import live_module, text_inputs_of

        chosen = cast("OnnxExportSettings", settings)
        prepared = Prepared.from_json((inputs["prepared"] / "prepared.json").read_bytes(), source="prepared.json")
        module = live_module(prepared.model, "float32", chosen.attention)
        names = text_inputs_of(module)
        random = np.random.default_rng(0)
        limits = (vocabulary_of(module), prepared.model.max_length or 512)
        example = padded_batch(TRACED, names, limits, random)
        outputs = tuple(answer_of(module, example))
        file = directory / "model.onnx"
        try:
            with _silence():
                _export(module, example, outputs, file, chosen.exporter)
        except Exception as error:
            raise Unsupported(
                f"export ({chosen.exporter}, {chosen.attention}): {type(error).__name__}: {one_line(error)}"
            ) from error
        for shape in CHECKED:
            batch = padded_batch(shape, names, limits, random)
            _check(file, batch, answer_of(module, batch))


def _export(
    module: "torch.nn.Module",
    example: Batch,
    outputs: tuple[str, ...],
    file: Path,
    exporter: Literal["dynamo", "torchscript"],
) -> None:
    import torch

    tensors = {name: torch.from_numpy(array) for name, array in example.items()}
    graph = positional(module, tuple(tensors), outputs)
    size = sum(parameter.numel() * parameter.element_size() for parameter in module.parameters())
    with torch.no_grad():
        if exporter == "dynamo":
            free = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
            torch.onnx.export(
                graph,
                tuple(tensors.values()),
                str(file),
                dynamo=True,
                dynamic_shapes=(tuple(free for _ in tensors),),
                input_names=list(tensors),
                output_names=list(outputs),
                opset_version=OPSET,
                external_data=size > EXTERNAL_DATA_BYTES,
                verbose=False,
            )
            return
        if size > EXTERNAL_DATA_BYTES:
            raise Unsupported("the torchscript exporter cannot keep weights of this size in one file")
        torch.onnx.export(
            graph,
            tuple(tensors.values()),
            str(file),
            dynamo=False,
            dynamic_axes={name: {0: "batch", 1: "length"} for name in tensors}
            | {name: {0: "batch", **({1: "length"} if _has_length(module, example, name) else {})} for name in outputs},
            input_names=list(tensors),
            output_names=list(outputs),
            opset_version=TORCHSCRIPT_OPSET,
        )


def _has_length(module: "torch.nn.Module", example: Batch, output: str) -> bool:
    """Say whether axis 1 of an output is the length."""
    shape = answer_of(module, example)[output].shape
    return len(shape) > 1 and shape[1] == example["input_ids"].shape[1]


def _check(file: Path, batch: Batch, expected: Batch) -> None:
    """Compare the graph with PyTorch on `batch`, where the mask counts.

    Raises:
        Unsupported: It does not run or answers otherwise.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    shape = batch["input_ids"].shape
    try:
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        names = [node.name for node in session.get_outputs()]
        taken = {node.name for node in session.get_inputs()}
        answer = dict(zip(names, session.run(names, {k: v for k, v in batch.items() if k in taken}), strict=True))
    except Exception as error:
        raise Unsupported(f"the exported graph does not run on shape {shape}: {one_line(error)}") from error
    reason = differences(answer, expected, batch, LARGEST_ERROR)
    if reason is not None:
        raise Unsupported(f"the exported graph {reason}")


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep the exporters' chatter out of the log: warnings, progress, registration notes."""
    noisy = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in noisy]
    for logger in noisy:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(None):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(noisy, levels, strict=True):
            logger.setLevel(level)
