"""Packs the weights of matrix products into blocks of 4 or 8 bits, computed with activations in int8 or float32."""

from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar, Literal, cast

from pydantic import Field

from tuner.errors import Unsupported
from tuner.models.onnx_files import EXTERNAL_DATA_BYTES, find_graph, kept_float, silence
from tuner.models.wording import one_line
from tuner.plugins import installed_versions, space_file
from tuner.records import base

__all__ = ["OrtMatmulNbits", "OrtMatmulNbitsSettings"]


class OrtMatmulNbitsSettings(base.Settings):
    """How weights are packed.

    Attributes:
        bits: Of a weight.
        block_size: Weights that share a scale.
        is_symmetric: Without zero points.
        accuracy_level: 4: activations become int8 for the product; 0: the runtime's choice, float32.
        keep_float: How many of the most sensitive products stay in float32.
    """

    bits: Literal[4, 8] = 8
    block_size: Literal[32, 64, 128] = 32
    is_symmetric: bool = False
    accuracy_level: Literal[0, 4] = 4
    keep_float: int = Field(default=0, ge=0)


class OrtMatmulNbits:
    """The step."""

    name: ClassVar[str] = "ort_matmul_nbits"
    Settings: ClassVar[type[base.Settings]] = OrtMatmulNbitsSettings
    after: ClassVar[tuple[str, ...]] = ("onnx_export", "ort_sensitivity")
    build_guess_s: ClassVar[tuple[float, float]] = (2.0, 50.0)

    def installed(self) -> dict[str, str] | None:
        """Return versions of what packs."""
        return installed_versions("onnxruntime", "onnx", "onnx-ir")

    def space(self) -> Traversable:
        """Return the space of its settings."""
        return space_file("ort_matmul_nbits.toml")

    def build(self, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write ``model.onnx`` (and its external data where the source is large).

        Raises:
            Unsupported: There is no ONNX file, or it cannot be packed.
        """
        from tuner.models.graphs import summarize

        chosen = cast("OrtMatmulNbitsSettings", settings)
        source = find_graph(inputs, "packing weights")
        is_large = summarize(source).n_bytes > EXTERNAL_DATA_BYTES
        kept = kept_float(inputs, chosen.keep_float, source)
        try:
            with silence():
                n_packed = _pack(source, directory / "model.onnx", chosen, kept, is_large=is_large)
        except Exception as error:
            raise Unsupported(f"packing {source.name}: {type(error).__name__}: {one_line(error)}") from error
        if n_packed == 0:
            raise Unsupported(f"{source.name} has no matrix product with constant weights to pack")


def _pack(source: Path, target: Path, chosen: OrtMatmulNbitsSettings, kept: list[str], *, is_large: bool) -> int:
    """Write the packed graph and return how many products were packed."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(
        onnx.load(str(source)),
        bits=chosen.bits,
        block_size=chosen.block_size,
        is_symmetric=chosen.is_symmetric,
        accuracy_level=chosen.accuracy_level,
        nodes_to_exclude=kept,
    )
    quantizer.process()
    quantizer.model.save_model_to_file(str(target), is_large)
    return sum(1 for node in quantizer.model.model.graph.node if node.op_type == "MatMulNBits")
