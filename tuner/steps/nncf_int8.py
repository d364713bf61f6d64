"""Quantizes an ONNX graph for OpenVINO to int8 with NNCF, ranges of activations found on the prepared data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from tuner.errors import Unsupported
from tuner.models.graph_steps import GraphStep, KeepingFloat
from tuner.models.onnx_files import Batch, kept_float, read_samples
from tuner.records import base

__all__ = ["NncfInt8", "NncfInt8Settings"]

MOST_SAMPLES = 64
NO_SMOOTHING = -1.0


class NncfInt8Settings(KeepingFloat):
    """How values are quantized.

    Attributes:
        preset: ``performance``: symmetric activations; ``mixed``: asymmetric ones.
        smooth_quant: Outliers move from activations into weights before ranges are found.
        overflow_fix: 7-bit weights, for CPUs without VNNI, whose 16-bit sums saturate.
        is_transformer: The library's scheme for transformers, which leaves softmax and its like alone.
    """

    preset: Literal["performance", "mixed"] = "performance"
    smooth_quant: bool = True
    overflow_fix: bool = False
    is_transformer: bool = True


class NncfInt8(GraphStep):
    """The step."""

    name: ClassVar[str] = "nncf_int8"
    Settings: ClassVar[type[base.Settings]] = NncfInt8Settings
    needs: ClassVar[tuple[str, ...]] = ("nncf", "openvino")
    doing: ClassVar[str] = "quantization with NNCF"
    build_guess_s: ClassVar[tuple[float, float]] = (10.0, 300.0)
    distributions: ClassVar[tuple[str, ...]] = ("nncf", "openvino", "onnx", "torch", "transformers", "onnxscript")
    uses_data: ClassVar[bool] = True
    extra: ClassVar[str] = "quant"

    def make(self, source: Path, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write ``model.xml`` and ``model.bin``.

        Raises:
            Unsupported: The data cannot calibrate, or the nodes to keep are not there.
        """
        chosen = cast("NncfInt8Settings", settings)
        samples = read_samples(inputs["prepared"], MOST_SAMPLES)
        _quantize(source, samples, kept_float(inputs, chosen.keep_float), directory / "model.xml", chosen)


def _quantize(source: Path, samples: list[Batch], kept: list[str], target: Path, chosen: NncfInt8Settings) -> None:
    import nncf
    import openvino

    model = openvino.Core().read_model(str(source))
    present = {node.get_friendly_name() for node in model.get_ops()}
    if not present.issuperset(kept):
        raise Unsupported("the sensitive nodes have other names in OpenVINO: keep_float=0 is left")
    names = [port.get_any_name() for port in model.inputs]
    fix = nncf.OverflowFix.ENABLE if chosen.overflow_fix else nncf.OverflowFix.DISABLE
    advanced: dict[str, Any] = {"overflow_fix": fix}
    if not chosen.smooth_quant:
        off = {"matmul": NO_SMOOTHING, "convolution": NO_SMOOTHING}
        advanced["smooth_quant_alphas"] = nncf.AdvancedSmoothQuantParameters(**off)
    quantized = nncf.quantize(
        model,
        nncf.Dataset(samples, lambda sample: {name: sample[name] for name in names}),
        preset=nncf.QuantizationPreset(chosen.preset),
        subset_size=len(samples),
        model_type=nncf.ModelType.TRANSFORMER if chosen.is_transformer else None,
        ignored_scope=nncf.IgnoredScope(names=kept) if kept else None,
        advanced_parameters=nncf.AdvancedQuantizationParameters(**advanced),
    )
    openvino.save_model(quantized, str(target), compress_to_fp16=False)
