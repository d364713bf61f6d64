"""Quantizes weights and activations of an ONNX graph to int8 with fixed ranges, calibrated on the prepared data."""

import shutil
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from pydantic import Field

from tuner.errors import Unsupported
from tuner.models.onnx_files import (
    EXTERNAL_DATA_BYTES,
    Batch,
    find_graph,
    kept_float,
    read_samples,
    silence,
    with_shapes,
)
from tuner.models.wording import one_line
from tuner.plugins import installed_versions, space_file
from tuner.records import base

__all__ = ["OrtStaticInt8", "OrtStaticInt8Settings"]

MOST_SAMPLES = {"minmax": 32, "percentile": 12, "entropy": 12}
"""Histograms keep every inner value of every sample in memory; ranges do not."""
OPERATORS = ["MatMul", "Gemm", "Conv"]


class OrtStaticInt8Settings(base.Settings):
    """How values are quantized.

    Attributes:
        calibration: How ranges of activations are found.
        types: Types of activations and weights: unsigned or signed bytes.
        per_channel: One scale a channel of the weights.
        reduce_range: 7-bit weights, for CPUs without VNNI, whose 16-bit sums saturate.
        keep_float: How many of the most sensitive products stay in float32.
    """

    calibration: Literal["minmax", "entropy", "percentile"] = "minmax"
    types: Literal["U8S8", "S8S8", "U8U8"] = "U8S8"
    per_channel: bool = True
    reduce_range: bool = False
    keep_float: int = Field(default=0, ge=0)


class OrtStaticInt8:
    """The step."""

    name: ClassVar[str] = "ort_static_int8"
    Settings: ClassVar[type[base.Settings]] = OrtStaticInt8Settings
    after: ClassVar[tuple[str, ...]] = ("onnx_export", "ort_sensitivity")
    build_guess_s: ClassVar[tuple[float, float]] = (4.0, 150.0)
    uses_data: ClassVar[bool] = True

    def installed(self) -> dict[str, str] | None:
        """Return versions of what quantizes."""
        return installed_versions("onnxruntime", "onnx")

    def space(self) -> Traversable:
        """Return the space of its settings."""
        return space_file("ort_static_int8.toml")

    def build(self, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write ``model.onnx`` (and its external data where the source is large).

        Raises:
            Unsupported: There is no ONNX file, the data cannot calibrate, or it cannot be quantized.
        """
        from tuner.models.graphs import summarize

        chosen = cast("OrtStaticInt8Settings", settings)
        source = find_graph(inputs, "static quantization")
        samples = read_samples(inputs["prepared"], MOST_SAMPLES[chosen.calibration])
        if chosen.calibration != "minmax":
            samples = of_one_shape(samples)
        is_large = summarize(source).n_bytes > EXTERNAL_DATA_BYTES
        work = directory / "work"
        work.mkdir()
        try:
            with silence():
                _quantize(inputs, source, samples, directory / "model.onnx", chosen, is_large=is_large)
        except Unsupported:
            raise
        except Exception as error:
            raise Unsupported(
                f"static quantization of {source.name}: {type(error).__name__}: {one_line(error)}"
            ) from error
        finally:
            shutil.rmtree(work)


def of_one_shape(samples: list[Batch]) -> list[Batch]:
    """Return the samples of the commonest shape: histograms of the library take one shape."""
    shapes = [tuple((name, array.shape) for name, array in sorted(sample.items())) for sample in samples]
    wanted = max(shapes, key=shapes.count)
    return [sample for sample, shape in zip(samples, shapes, strict=True) if shape == wanted]


def _quantize(
    inputs: Mapping[str, Path],
    source: Path,
    samples: list[Batch],
    target: Path,
    chosen: OrtStaticInt8Settings,
    *,
    is_large: bool,
) -> None:
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

    from tuner.models.settling import settle

    work = target.parent / "work"
    graph = with_shapes(settle(source, work / "settled"), work, is_large=is_large)
    names = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}
    kinds = {"U8": QuantType.QUInt8, "S8": QuantType.QInt8}
    quantize_static(
        graph,
        target,
        _reader(graph, samples),
        quant_format=QuantFormat.QDQ,
        op_types_to_quantize=OPERATORS,
        per_channel=chosen.per_channel,
        reduce_range=chosen.reduce_range,
        activation_type=kinds[chosen.types[:2]],
        weight_type=kinds[chosen.types[2:]],
        nodes_to_exclude=kept_float(inputs, chosen.keep_float, graph),
        use_external_data_format=is_large,
        calibrate_method=CalibrationMethod[names[chosen.calibration]],
        extra_options={"MatMulConstBOnly": True, "ActivationSymmetric": chosen.types == "S8S8"},
    )


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
