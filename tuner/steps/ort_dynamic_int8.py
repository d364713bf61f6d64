"""Quantizes the weights of an ONNX graph to int8, activations at run time, with ONNX Runtime's own tool."""

import shutil
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar, Literal, cast

from pydantic import Field

from tuner.errors import Unsupported
from tuner.models.onnx_files import EXTERNAL_DATA_BYTES, find_graph, kept_float, silence, with_shapes
from tuner.models.wording import one_line
from tuner.plugins import installed_versions, space_file
from tuner.records import base

__all__ = ["OrtDynamicInt8", "OrtDynamicInt8Settings"]


OPERATORS = ["MatMul", "Gemm", "Conv", "Attention", "LSTM"]
"""Not embeddings, which the tool would take too: that saves no time and costs fidelity."""


class OrtDynamicInt8Settings(base.Settings):
    """How weights are quantized.

    Attributes:
        weight_type: Signed or unsigned weights.
        per_channel: One scale a channel instead of one a tensor.
        reduce_range: 7-bit weights, for CPUs without VNNI, whose 16-bit sums saturate.
        keep_float: How many of the most sensitive products stay in float32.
    """

    weight_type: Literal["QInt8", "QUInt8"] = "QInt8"
    per_channel: bool = False
    reduce_range: bool = False
    keep_float: int = Field(default=0, ge=0)


class OrtDynamicInt8:
    """The step."""

    name: ClassVar[str] = "ort_dynamic_int8"
    Settings: ClassVar[type[base.Settings]] = OrtDynamicInt8Settings
    after: ClassVar[tuple[str, ...]] = ("onnx_export", "ort_sensitivity")
    build_guess_s: ClassVar[tuple[float, float]] = (1.5, 20.0)

    def installed(self) -> dict[str, str] | None:
        """Return versions of what quantizes."""
        return installed_versions("onnxruntime", "onnx")

    def space(self) -> Traversable:
        """Return the space of its settings."""
        return space_file("ort_dynamic_int8.toml")

    def build(self, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write ``model.onnx`` (and its external data where the source is large).

        Raises:
            Unsupported: There is no ONNX file, or it cannot be quantized.
        """
        from tuner.models.graphs import summarize

        chosen = cast("OrtDynamicInt8Settings", settings)
        source = find_graph(inputs, "dynamic quantization")
        is_large = summarize(source).n_bytes > EXTERNAL_DATA_BYTES
        work = directory / "work"
        work.mkdir()
        try:
            with silence():
                _quantize(inputs, source, work, directory / "model.onnx", chosen, is_large=is_large)
        except Unsupported:
            raise
        except Exception as error:
            raise Unsupported(
                f"dynamic quantization of {source.name}: {type(error).__name__}: {one_line(error)}"
            ) from error
        finally:
            shutil.rmtree(work)


def _quantize(
    inputs: Mapping[str, Path],
    source: Path,
    work: Path,
    target: Path,
    chosen: OrtDynamicInt8Settings,
    *,
    is_large: bool,
) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    from tuner.models.settling import settle

    graph = with_shapes(settle(source, work / "settled"), work, is_large=is_large)
    quantize_dynamic(
        graph,
        target,
        op_types_to_quantize=OPERATORS,
        weight_type=QuantType[chosen.weight_type],
        per_channel=chosen.per_channel,
        reduce_range=chosen.reduce_range,
        nodes_to_exclude=kept_float(inputs, chosen.keep_float, graph),
        use_external_data_format=is_large,
    )
