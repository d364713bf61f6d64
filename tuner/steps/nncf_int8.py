"""Quantizes an ONNX graph for OpenVINO to int8 with NNCF, ranges of activations found on the prepared data."""

import contextlib
import logging
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from pydantic import Field

from tuner.errors import Unsupported
from tuner.models.onnx_files import Batch, find_graph, kept_float, read_samples
from tuner.models.wording import one_line
from tuner.plugins import installed_versions, space_file
from tuner.records import base

__all__ = ["NncfInt8", "NncfInt8Settings"]

MOST_SAMPLES = 64
NO_SMOOTHING = -1.0


class NncfInt8Settings(base.Settings):
    """How values are quantized.

    Attributes:
        preset: ``performance``: symmetric activations; ``mixed``: asymmetric ones.
        smooth_quant: Outliers move from activations into weights before ranges are found.
        overflow_fix: 7-bit weights, for CPUs without VNNI, whose 16-bit sums saturate.
        is_transformer: The library's scheme for transformers, which leaves softmax and its like alone.
        keep_float: How many of the most sensitive products stay unquantized.
    """

    preset: Literal["performance", "mixed"] = "performance"
    smooth_quant: bool = True
    overflow_fix: bool = False
    is_transformer: bool = True
    keep_float: int = Field(default=0, ge=0)


class NncfInt8:
    """The step."""

    name: ClassVar[str] = "nncf_int8"
    Settings: ClassVar[type[base.Settings]] = NncfInt8Settings
    after: ClassVar[tuple[str, ...]] = ("onnx_export", "ort_sensitivity")
    build_guess_s: ClassVar[tuple[float, float]] = (10.0, 300.0)
    distributions: ClassVar[tuple[str, ...]] = ("nncf", "openvino", "onnx", "torch", "transformers", "onnxscript")
    uses_data: ClassVar[bool] = True
    extra: ClassVar[str] = "quant"

    def installed(self) -> dict[str, str] | None:
        """Return versions of what quantizes."""
        return installed_versions("nncf", "openvino")

    def space(self) -> Traversable:
        """Return the space of its settings."""
        return space_file("nncf_int8.toml")

    def build(self, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write ``model.xml`` and ``model.bin``.

        Raises:
            Unsupported: There is no ONNX file, the data cannot calibrate, or it cannot be quantized.
        """
        chosen = cast("NncfInt8Settings", settings)
        source = find_graph(inputs, "NNCF")
        samples = read_samples(inputs["prepared"], MOST_SAMPLES)
        kept = kept_float(inputs, chosen.keep_float)
        try:
            with quiet():
                _quantize(source, samples, kept, directory / "model.xml", chosen)
        except Exception as error:
            raise Unsupported(f"NNCF on {source.name}: {type(error).__name__}: {one_line(error)}") from error


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


@contextlib.contextmanager
def quiet() -> Any:  # noqa: ANN401 - a context
    """Keep the library's progress out of the log."""
    logging.getLogger("nncf").setLevel(logging.ERROR)
    with contextlib.redirect_stdout(None):
        yield
