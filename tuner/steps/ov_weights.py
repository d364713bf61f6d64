"""Compresses the weights of a graph for OpenVINO to 8 or 4 bits with NNCF; activations stay as the session computes."""

from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar, Literal, cast

from tuner.errors import Unsupported
from tuner.models.onnx_files import find_graph
from tuner.models.wording import one_line
from tuner.plugins import installed_versions, space_file
from tuner.records import base
from tuner.steps.nncf_int8 import quiet

__all__ = ["OvWeights", "OvWeightsSettings"]


class OvWeightsSettings(base.Settings):
    """How weights are stored.

    Attributes:
        mode: Bits, and with (``asym``) or without zero points.
    """

    mode: Literal["int8_asym", "int8_sym", "int4_asym", "int4_sym"] = "int8_asym"


class OvWeights:
    """The step."""

    name: ClassVar[str] = "ov_weights"
    Settings: ClassVar[type[base.Settings]] = OvWeightsSettings
    after: ClassVar[tuple[str, ...]] = ("onnx_export",)
    build_guess_s: ClassVar[tuple[float, float]] = (4.0, 50.0)
    distributions: ClassVar[tuple[str, ...]] = ("nncf", "openvino", "onnx", "torch", "transformers", "onnxscript")
    extra: ClassVar[str] = "quant"

    def installed(self) -> dict[str, str] | None:
        """Return versions of what compresses."""
        return installed_versions("nncf", "openvino")

    def space(self) -> Traversable:
        """Return the space of its settings."""
        return space_file("ov_weights.toml")

    def build(self, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write ``model.xml`` and ``model.bin``.

        Raises:
            Unsupported: There is no ONNX file, or its weights cannot be compressed.
        """
        chosen = cast("OvWeightsSettings", settings)
        source = find_graph(inputs, "compressing weights")
        try:
            import nncf
            import openvino

            with quiet():
                model = openvino.Core().read_model(str(source))
                compressed = nncf.compress_weights(model, mode=nncf.CompressWeightsMode(chosen.mode))
                openvino.save_model(compressed, str(directory / "model.xml"), compress_to_fp16=False)
        except Exception as error:
            raise Unsupported(f"compressing {source.name}: {type(error).__name__}: {one_line(error)}") from error
