"""Quantizes the weights of an ONNX graph to int8, activations at run time, with ONNX Runtime's own tool."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal, cast

from tuner.models.graph_steps import GraphStep, KeepingFloat, shaped
from tuner.models.onnx_files import kept_float
from tuner.records import base

__all__ = ["OrtDynamicInt8", "OrtDynamicInt8Settings"]


OPERATORS = ["MatMul", "Gemm", "Conv", "Attention", "LSTM"]
"""Not embeddings, which the tool would take too: that saves no time and costs fidelity."""


class OrtDynamicInt8Settings(KeepingFloat):
    """How weights are quantized.

    Attributes:
        weight_type: Signed or unsigned weights.
        per_channel: One scale a channel instead of one a tensor.
        reduce_range: 7-bit weights, for CPUs without VNNI, whose 16-bit sums saturate.
    """

    weight_type: Literal["QInt8", "QUInt8"] = "QInt8"
    per_channel: bool = False
    reduce_range: bool = False


class OrtDynamicInt8(GraphStep):
    """The step."""

    name: ClassVar[str] = "ort_dynamic_int8"
    Settings: ClassVar[type[base.Settings]] = OrtDynamicInt8Settings
    doing: ClassVar[str] = "dynamic quantization"
    build_guess_s: ClassVar[tuple[float, float]] = (1.5, 20.0)

    def make(self, source: Path, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write ``model.onnx`` (and its external data where the source is large)."""
        from onnxruntime.quantization import QuantType, quantize_dynamic

        chosen = cast("OrtDynamicInt8Settings", settings)
        graph = shaped(source, directory)
        quantize_dynamic(
            graph.file,
            directory / "model.onnx",
            op_types_to_quantize=OPERATORS,
            weight_type=QuantType[chosen.weight_type],
            per_channel=chosen.per_channel,
            reduce_range=chosen.reduce_range,
            nodes_to_exclude=kept_float(inputs, chosen.keep_float, graph.file),
            use_external_data_format=graph.is_large,
        )
