"""Ranks the products of an ONNX graph by what int8 does to each, so that the worst can stay in float32.

For every MatMul, Gemm and Conv with constant weights, on a few prepared samples: the relative error (L2) of its output
when its input and weights are rounded to int8. One pass of the float graph gives all of them; the damage further on is
not followed, the order is what counts.
"""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tuner.errors import Unsupported
from tuner.models.graph_steps import GraphStep
from tuner.models.onnx_files import EXTERNAL_DATA_BYTES, SENSITIVITY, Batch, read_samples
from tuner.records import base

__all__ = ["OrtSensitivity", "OrtSensitivitySettings"]

SAMPLES = 6
MOST_TOKENS = 128
MOST_S = 60.0
"""After this no further sample is looked at."""
WEIGHTED = ("MatMul", "Gemm", "Conv")
MATRIX = 2


class OrtSensitivitySettings(base.Settings):
    """None yet."""


class Node(NamedTuple):
    """A node with constant weights; `weight` has output channels on the last axis, None where only ratios are used."""

    name: str
    source: str
    weight: np.ndarray
    is_product: bool


class OrtSensitivity(GraphStep):
    """The step."""

    name: ClassVar[str] = "ort_sensitivity"
    Settings: ClassVar[type[base.Settings]] = OrtSensitivitySettings
    after: ClassVar[tuple[str, ...]] = ("onnx_export",)
    doing: ClassVar[str] = "ranking the products"
    build_guess_s: ClassVar[tuple[float, float]] = (3.0, 150.0)
    distributions: ClassVar[tuple[str, ...]] = ("onnx", "onnxruntime")
    uses_data: ClassVar[bool] = True

    def make(self, source: Path, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:  # noqa: ARG002
        """Write ``sensitivity.json``: nodes, worst first, with their relative error."""
        samples = read_samples(inputs["prepared"], SAMPLES)
        errors = _errors(source, samples, directory)
        ranked = sorted(errors.items(), key=lambda item: -item[1])
        nodes = [{"node": name, "error_ratio": float(f"{error:.4g}")} for name, error in ranked]
        (directory / SENSITIVITY).write_text(json.dumps({"nodes": nodes, "samples": len(samples)}, indent=1))


def _errors(source: Path, samples: list[Batch], directory: Path) -> dict[str, float]:
    """Return the relative error of every node's output, by name."""
    import onnx

    model = onnx.load(str(source))
    nodes = list(_weighted(model))
    if not nodes:
        raise Unsupported(f"{source.name} has no named product with constant weights: nothing to rank or to quantize")
    rounded = {node.name: _round_weight(node.weight) for node in nodes}
    squares = {node.name: [0.0, 0.0] for node in nodes}
    deadline = time.monotonic() + MOST_S
    for values in _inner_values(model, sorted({node.source for node in nodes}), samples, directory):
        for node in nodes:
            error, size = _damage(node, rounded[node.name], values[node.source])
            squares[node.name][0] += error
            squares[node.name][1] += size
        if time.monotonic() > deadline:
            break
    return {name: float(np.sqrt(error / size)) if size > 0 else 0.0 for name, (error, size) in squares.items()}


def _weighted(model: Any) -> Iterator[Node]:  # noqa: ANN401 - the library is untyped
    """Yield the named nodes whose second input is a constant of float numbers."""
    from onnx import numpy_helper

    weights = {item.name: item for item in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type not in WEIGHTED or not node.name or node.input[1] not in weights:
            continue
        weight = numpy_helper.to_array(weights[node.input[1]]).astype(np.float32)
        flags = {item.name: item.i for item in node.attribute}
        is_product = node.op_type in {"MatMul", "Gemm"} and weight.ndim == MATRIX and not flags.get("transA")
        if node.op_type == "Gemm" and flags.get("transB"):
            weight = weight.T
        if node.op_type == "Conv":
            weight = np.moveaxis(weight, 0, -1)
        yield Node(node.name, node.input[0], weight, is_product)


def _inner_values(model: Any, names: list[str], samples: list[Batch], directory: Path) -> Iterator[Batch]:  # noqa: ANN401
    """Yield the values of `names` for every sample, cut to the first tokens."""
    import onnx
    import onnxruntime

    known = {item.name for item in (*model.graph.output, *model.graph.input)}
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names if name not in known)
    file = directory / "traced.onnx"
    is_large = model.ByteSize() > EXTERNAL_DATA_BYTES
    onnx.save(model, str(file), save_as_external_data=is_large, location="traced.onnx.data")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    finally:
        for made in directory.glob("traced.onnx*"):
            made.unlink()
    taken = {item.name: item.shape for item in session.get_inputs()}
    wanted = [name for name in names if name not in taken]
    for sample in samples:
        batch = {name: _cut(sample[name], taken[name]) for name in taken}
        yield dict(zip(wanted, session.run(wanted, batch), strict=True)) | batch


def _cut(array: np.ndarray, shape: list[object]) -> np.ndarray:
    """Return the first tokens of a row of ids whose length is free."""
    is_free = array.ndim == MATRIX and array.dtype.kind == "i" and not isinstance(shape[1], int)
    return np.ascontiguousarray(array[:, :MOST_TOKENS]) if is_free else array


def _round_weight(weight: np.ndarray) -> np.ndarray:
    """Round to int8 with one scale a channel."""
    scale = np.abs(weight).reshape(-1, weight.shape[-1]).max(axis=0) / 127
    scale[scale == 0] = 1
    rounded: np.ndarray = np.round(weight / scale) * scale
    return rounded


def _round_input(values: np.ndarray) -> np.ndarray:
    """Round to 8 bits with one scale and zero point, as a runtime does."""
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    scale = (high - low) / 255 or 1.0
    zero = np.round(-low / scale)
    rounded: np.ndarray = (np.clip(np.round(values / scale) + zero, 0, 255) - zero) * scale
    return rounded


def _damage(node: Node, rounded: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Return the squared error and the squared size of the output; for convolutions of input and weights together."""
    values = values.astype(np.float32)
    if node.is_product:
        right = values @ node.weight
        return float(np.square(_round_input(values) @ rounded - right).sum()), float(np.square(right).sum())
    parts = ((_round_input(values), values), (rounded, node.weight))
    error = sum(float(np.square(near - right).sum()) / (float(np.square(right).sum()) or 1.0) for near, right in parts)
    return error, 1.0
