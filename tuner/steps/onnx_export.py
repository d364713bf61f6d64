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
from tuner.models.wording import one_line
from tuner.plugins import installed_versions, space_file
from tuner.records import base
from tuner.records.model import Prepared

if TYPE_CHECKING:
    import torch

__all__ = ["OnnxExport", "OnnxExportSettings"]

TRACED = (2, 16)
CHECKED = ((1, 5), (3, 33), (1, 16))
"""Batch and length: other sizes than traced, among them batch 1, a short and a longer row."""
OPSET = 20
TORCHSCRIPT_OPSET = 17
EXTERNAL_DATA_BYTES = 1 << 30
"""Weights above this lie beside the file: protobuf ends at 2 GiB, and the graph needs room too."""
LARGEST_ERROR = 1e-3
Batch = dict[str, np.ndarray]


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
        import torch

        from tuner.models.live import live_module, text_inputs_of

        chosen = cast("OnnxExportSettings", settings)
        prepared = Prepared.from_json((inputs["prepared"] / "prepared.json").read_bytes(), source="prepared.json")
        module = live_module(prepared.model, "float32", chosen.attention)
        names = text_inputs_of(module)
        random = np.random.default_rng(0)
        limits = (_vocabulary(module), prepared.model.max_length or 512)
        example = _padded_batch(TRACED, names, limits, random)
        with torch.inference_mode():
            outputs = tuple(_answer(module, example))
        file = directory / "model.onnx"
        try:
            with _silence():
                _export(module, example, outputs, file, chosen.exporter)
        except Exception as error:
            raise Unsupported(
                f"export ({chosen.exporter}, {chosen.attention}): {type(error).__name__}: {one_line(error)}"
            ) from error
        for shape in CHECKED:
            batch = _padded_batch(shape, names, limits, random)
            with torch.inference_mode():
                expected = _answer(module, batch)
            _check(file, batch, expected)


def _answer(module: "torch.nn.Module", batch: Batch) -> Batch:
    import torch

    answer = module(**{name: torch.from_numpy(array) for name, array in batch.items()})
    return {name: tensor.numpy() for name, tensor in answer.items()}


def _vocabulary(module: "torch.nn.Module") -> int:
    return int(getattr(module.inner.config, "vocab_size", 100) or 100)


def _padded_batch(
    shape: tuple[int, int], names: tuple[str, ...], limits: tuple[int, int], random: np.random.Generator
) -> Batch:
    """Make a batch in which every second row is padded to two thirds."""
    vocabulary, longest = limits
    rows, length = shape[0], min(shape[1], longest)
    mask = np.ones((rows, length), np.int64)
    mask[1::2, max(1, 2 * length // 3) :] = 0
    ids = random.integers(min(4, vocabulary - 1), vocabulary, (rows, length))
    arrays = {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": np.zeros_like(mask)}
    return {name: arrays[name] for name in names}


def _export(
    module: "torch.nn.Module",
    example: Batch,
    outputs: tuple[str, ...],
    file: Path,
    exporter: Literal["dynamo", "torchscript"],
) -> None:
    import torch

    tensors = {name: torch.from_numpy(array) for name, array in example.items()}
    positional = _positional(module, tuple(tensors), outputs)
    size = sum(parameter.numel() * parameter.element_size() for parameter in module.parameters())
    with torch.no_grad():
        if exporter == "dynamo":
            free = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
            torch.onnx.export(
                positional,
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
            positional,
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
    shape = _answer(module, example)[output].shape
    return len(shape) > 1 and shape[1] == example["input_ids"].shape[1]


def _positional(module: "torch.nn.Module", names: tuple[str, ...], outputs: tuple[str, ...]) -> "torch.nn.Module":
    """Return a module that takes and answers tuples, in the order of the names; exporters name those reliably."""
    import torch

    class Positional(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, *tensors: "torch.Tensor") -> tuple["torch.Tensor", ...]:
            answer = self.inner(**dict(zip(names, tensors, strict=True)))
            return tuple(answer[name] for name in outputs)

    return Positional().eval()


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
    for name, right in expected.items():
        if name not in answer or answer[name].shape != right.shape:
            raise Unsupported(f"the exported graph's output {name} has another shape than PyTorch's on inputs {shape}")
        left, wanted = answer[name], right
        if right.shape[:2] == shape:
            counted = batch["attention_mask"] > 0 if "attention_mask" in batch else np.ones(shape, bool)
            left, wanted = left[counted], wanted[counted]
        error_ratio = float(np.abs(left - wanted).max() / max(float(np.abs(wanted).max()), 1e-6))
        if not error_ratio <= LARGEST_ERROR:
            raise Unsupported(f"the exported graph differs from PyTorch by {error_ratio:.2g} on inputs {shape}: {name}")


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
