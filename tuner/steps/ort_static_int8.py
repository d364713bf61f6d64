"""Quantizes weights and activations of an ONNX graph to int8 with fixed ranges, calibrated on the prepared data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np

from tuner.models.graph_steps import GraphStep, KeepingFloat, ShapedGraph, shaped
from tuner.models.onnx_files import Batch, kept_float, read_samples
from tuner.records import base

__all__ = ["OrtStaticInt8", "OrtStaticInt8Settings"]

MOST_SAMPLES = {"minmax": 32, "percentile": 12, "entropy": 12}
"""Histograms keep every inner value of every sample in memory; ranges do not."""
OPERATORS = ["MatMul", "Gemm", "Conv"]
GEMM_INPUTS = 3
"""With a bias."""


class OrtStaticInt8Settings(KeepingFloat):
    """How values are quantized.

    Attributes:
        calibration: How ranges of activations are found.
        types: Types of activations and weights: unsigned or signed bytes.
        per_channel: One scale a channel of the weights.
        reduce_range: 7-bit weights, for CPUs without VNNI, whose 16-bit sums saturate.
    """

    calibration: Literal["minmax", "entropy", "percentile"] = "minmax"
    types: Literal["U8S8", "S8S8", "U8U8"] = "U8S8"
    per_channel: bool = True
    reduce_range: bool = False


class OrtStaticInt8(GraphStep):
    """The step."""

    name: ClassVar[str] = "ort_static_int8"
    Settings: ClassVar[type[base.Settings]] = OrtStaticInt8Settings
    doing: ClassVar[str] = "static quantization"
    build_guess_s: ClassVar[tuple[float, float]] = (4.0, 150.0)
    uses_data: ClassVar[bool] = True

    def make(self, source: Path, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write ``model.onnx`` (and its external data where the source is large).

        Raises:
            Unsupported: The data cannot calibrate.
        """
        from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

        chosen = cast("OrtStaticInt8Settings", settings)
        samples = read_samples(inputs["prepared"], MOST_SAMPLES[chosen.calibration])
        if chosen.calibration != "minmax":
            samples = of_one_shape(samples)
        names = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}
        kinds = {"U8": QuantType.QUInt8, "S8": QuantType.QInt8}
        graph = shaped(source, directory)
        file = flat_biases(graph)
        quantize_static(
            file,
            directory / "model.onnx",
            _reader(file, samples),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=OPERATORS,
            per_channel=chosen.per_channel,
            reduce_range=chosen.reduce_range,
            activation_type=kinds[chosen.types[:2]],
            weight_type=kinds[chosen.types[2:]],
            nodes_to_exclude=kept_float(inputs, chosen.keep_float, file),
            use_external_data_format=graph.is_large,
            calibrate_method=CalibrationMethod[names[chosen.calibration]],
            extra_options={"MatMulConstBOnly": True, "ActivationSymmetric": chosen.types == "S8S8"},
        )


def flat_biases(graph: ShapedGraph) -> Path:
    """Return the graph with the bias of each Gemm as a vector with one value a channel.

    A Gemm takes anything that broadcasts, and a fused Add leaves [1, n]; the library takes a bias apart by its first
    axis (seen in ONNX Runtime 1.32: "truth value of an array is ambiguous", or an index out of range).
    """
    import onnx
    from onnx import numpy_helper

    model = onnx.load(str(graph.file))
    constants = {item.name: item for item in model.graph.initializer}
    changed = False
    for node in model.graph.node:
        if node.op_type != "Gemm" or len(node.input) < GEMM_INPUTS or not {*node.input[1:]} <= constants.keys():
            continue
        bias, dims = constants[node.input[2]], constants[node.input[1]].dims
        is_transposed = any(item.name == "transB" and item.i for item in node.attribute)
        n = dims[0] if is_transposed else dims[1]
        if list(bias.dims) == [n] or any(size > 1 for size in bias.dims[:-1]):
            continue
        row = np.broadcast_to(numpy_helper.to_array(bias).reshape(-1), (n,))
        node.input[2] = f"{node.output[0]}__flat_bias"
        model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(row), node.input[2]))
        changed = True
    if not changed:
        return graph.file
    file = graph.work / "flat.onnx"
    onnx.save(model, str(file), save_as_external_data=graph.is_large, location="flat.onnx.data")
    return file


def of_one_shape(samples: list[Batch]) -> list[Batch]:
    """Return the samples of the commonest shape: histograms of the library take one shape."""
    shapes = [tuple((name, array.shape) for name, array in sorted(sample.items())) for sample in samples]
    wanted = max(shapes, key=shapes.count)
    return [sample for sample, shape in zip(samples, shapes, strict=True) if shape == wanted]


def _reader(graph: Path, samples: list[Batch]) -> Any:  # noqa: ANN401 - the base class is the library's
    import onnx
    from onnxruntime.quantization import CalibrationDataReader

    loaded = onnx.load(str(graph), load_external_data=False).graph
    taken = {item.name for item in loaded.input} - {item.name for item in loaded.initializer}
    rows = iter([{name: array for name, array in sample.items() if name in taken} for sample in samples])

    class Samples(CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> Batch | None:
            return next(rows, None)

    return Samples()
