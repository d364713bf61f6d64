"""Exports a model from PyTorch to ``model.onnx``, checked on batches it did not trace; axes that vary are free."""

import os
import warnings
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar, Literal, cast

from tuner.errors import Unsupported
from tuner.models.onnx_files import EXTERNAL_DATA_BYTES, silence
from tuner.models.tracing import AXES, LARGEST_ERROR, Batch, Subject, differences, open_subject
from tuner.models.variants import answer_of
from tuner.models.wording import one_line
from tuner.plugins import installed_versions, space_file
from tuner.records import base

__all__ = ["OnnxExport", "OnnxExportSettings"]

OPSET = 20
TORCHSCRIPT_OPSET = 17


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
        chosen = cast("OnnxExportSettings", settings)
        subject = open_subject(inputs, chosen.attention)
        file = directory / "model.onnx"
        try:
            with silence(), warnings.catch_warnings(action="ignore"):
                _export(subject, file, chosen.exporter)
        except Exception as error:
            raise Unsupported(
                f"export ({chosen.exporter}, {chosen.attention}): {type(error).__name__}: {one_line(error)}"
            ) from error
        for batch in subject.checks:
            _check(file, batch, answer_of(subject.module, batch))


def _export(subject: Subject, file: Path, exporter: Literal["dynamo", "torchscript"]) -> None:
    import torch

    tensors = {name: torch.from_numpy(array) for name, array in subject.example.items()}
    graph, outputs = subject.positional, subject.outputs
    size = sum(parameter.numel() * parameter.element_size() for parameter in subject.module.parameters())
    with torch.no_grad():
        if exporter == "dynamo":
            free = [dict.fromkeys(subject.free[name], torch.export.Dim.DYNAMIC) for name in tensors]
            torch.onnx.export(
                graph,
                tuple(tensors.values()),
                str(file),
                dynamo=True,
                dynamic_shapes=(tuple(free),) if any(free) else None,
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
            dynamic_axes={name: {axis: AXES[axis] for axis in subject.free[name]} for name in tensors}
            | _free_outputs(subject),
            input_names=list(tensors),
            output_names=list(outputs),
            opset_version=TORCHSCRIPT_OPSET,
        )


def _free_outputs(subject: Subject) -> dict[str, dict[int, str]]:
    """Return the free axes of the outputs: rows, and axis 1 where it is as long as that of an input that is free."""
    sizes = {array.shape[axis]: axis for name, array in subject.example.items() for axis in subject.free[name]}
    answer = answer_of(subject.module, subject.example)
    return {
        name: {axis: AXES[axis] for axis, size in enumerate(answer[name].shape[:2]) if sizes.get(size) == axis}
        for name in subject.outputs
    }


def _check(file: Path, batch: Batch, expected: Batch) -> None:
    """Compare the graph with PyTorch on `batch`, where the mask counts.

    Raises:
        Unsupported: It does not run or answers otherwise.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    shape = ", ".join(str(array.shape) for array in batch.values())
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
