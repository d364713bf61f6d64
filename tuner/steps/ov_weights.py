"""Compresses the weights of a graph for OpenVINO to 8 or 4 bits with NNCF; activations stay as the session computes."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal, cast

from tuner.models.graph_steps import GraphStep
from tuner.records import base

__all__ = ["OvWeights", "OvWeightsSettings"]


class OvWeightsSettings(base.Settings):
    """How weights are stored.

    Attributes:
        mode: Bits, and with (``asym``) or without zero points.
    """

    mode: Literal["int8_asym", "int8_sym", "int4_asym", "int4_sym"] = "int8_asym"


class OvWeights(GraphStep):
    """The step."""

    name: ClassVar[str] = "ov_weights"
    Settings: ClassVar[type[base.Settings]] = OvWeightsSettings
    after: ClassVar[tuple[str, ...]] = ("onnx_export",)
    needs: ClassVar[tuple[str, ...]] = ("nncf", "openvino")
    doing: ClassVar[str] = "compressing the weights"
    build_guess_s: ClassVar[tuple[float, float]] = (4.0, 50.0)
    distributions: ClassVar[tuple[str, ...]] = ("nncf", "openvino", "onnx", "torch", "transformers", "onnxscript")
    extra: ClassVar[str] = "quant"

    def make(self, source: Path, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:  # noqa: ARG002
        """Write ``model.xml`` and ``model.bin``."""
        import nncf
        import openvino

        chosen = cast("OvWeightsSettings", settings)
        model = openvino.Core().read_model(str(source))
        compressed = nncf.compress_weights(model, mode=nncf.CompressWeightsMode(chosen.mode))
        openvino.save_model(compressed, str(directory / "model.xml"), compress_to_fp16=False)
