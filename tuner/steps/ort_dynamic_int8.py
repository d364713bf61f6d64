"""Quantizes the weights of an ONNX graph to int8, activations at run time, with ONNX Runtime's own tool."""

import contextlib
import logging
import shutil
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar, Literal, cast

from tuner.errors import Unsupported
from tuner.models.wording import one_line
from tuner.plugins import installed_versions, space_file
from tuner.records import base

__all__ = ["OrtDynamicInt8", "OrtDynamicInt8Settings"]

EXTERNAL_DATA_BYTES = 1 << 30


class OrtDynamicInt8Settings(base.Settings):
    """How weights are quantized.

    Attributes:
        weight_type: Signed or unsigned weights.
        per_channel: One scale a channel instead of one a tensor.
        reduce_range: 7-bit weights, for CPUs without VNNI, whose 16-bit sums saturate.
    """

    weight_type: Literal["QInt8", "QUInt8"] = "QInt8"
    per_channel: bool = False
    reduce_range: bool = False


class OrtDynamicInt8:
    """The step."""

    name: ClassVar[str] = "ort_dynamic_int8"
    Settings: ClassVar[type[base.Settings]] = OrtDynamicInt8Settings
    after: ClassVar[tuple[str, ...]] = ("onnx_export",)

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
        source = _source(inputs)
        is_large = summarize(source).n_bytes > EXTERNAL_DATA_BYTES
        work = directory / "work"
        work.mkdir()
        try:
            with _silence():
                _quantize(source, work, directory / "model.onnx", chosen, is_large=is_large)
        except Exception as error:
            raise Unsupported(
                f"dynamic quantization of {source.name}: {type(error).__name__}: {one_line(error)}"
            ) from error
        finally:
            shutil.rmtree(work)


def _source(inputs: Mapping[str, Path]) -> Path:
    place = inputs.get("onnx_export", inputs["source"])
    file = place / "model.onnx" if place.is_dir() else place
    if file.suffix != ".onnx" or not file.is_file():
        raise Unsupported(f"dynamic quantization needs an .onnx file, not {place}")
    return file


def _quantize(source: Path, work: Path, target: Path, chosen: OrtDynamicInt8Settings, *, is_large: bool) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    from tuner.models.settling import settle

    quantize_dynamic(
        _with_shapes(settle(source, work / "settled"), work, is_large=is_large),
        target,
        weight_type=QuantType[chosen.weight_type],
        per_channel=chosen.per_channel,
        reduce_range=chosen.reduce_range,
        use_external_data_format=is_large,
    )


def _with_shapes(source: Path, work: Path, *, is_large: bool) -> Path:
    """Return the graph with inferred shapes and basic fusions, or the source where inference cannot read it."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared = work / "prepared.onnx"
    options = {"save_as_external_data": True, "all_tensors_to_one_file": True} if is_large else {}
    try:
        quant_pre_process(source, prepared, skip_symbolic_shape=True, **options)
    except Exception:  # noqa: BLE001 - shapes help, but quantizing works without them
        return source
    return prepared


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep the tool's advice, given on the root logger, out of the log."""
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(None):
            yield
    finally:
        logging.disable(logging.NOTSET)
