"""Packs the weights of matrix products into blocks of 4 or 8 bits, computed with activations in int8 or float32."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal, cast

from tuner.errors import Unsupported
from tuner.models.graph_steps import GraphStep, KeepingFloat, is_large
from tuner.models.onnx_files import kept_float
from tuner.records import base

__all__ = ["OrtMatmulNbits", "OrtMatmulNbitsSettings"]


class OrtMatmulNbitsSettings(KeepingFloat):
    """How weights are packed.

    Attributes:
        bits: Of a weight.
        block_size: Weights that share a scale.
        is_symmetric: Without zero points.
        accuracy_level: 4: activations become int8 for the product; 0: the runtime's choice, float32.
    """

    bits: Literal[4, 8] = 8
    block_size: Literal[32, 64, 128] = 32
    is_symmetric: bool = False
    accuracy_level: Literal[0, 4] = 4


class OrtMatmulNbits(GraphStep):
    """The step."""

    name: ClassVar[str] = "ort_matmul_nbits"
    Settings: ClassVar[type[base.Settings]] = OrtMatmulNbitsSettings
    needs: ClassVar[tuple[str, ...]] = ("onnxruntime", "onnx", "onnx-ir")
    doing: ClassVar[str] = "packing the weights"
    build_guess_s: ClassVar[tuple[float, float]] = (2.0, 50.0)

    def make(self, source: Path, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write ``model.onnx`` (and its external data where the source is large).

        Raises:
            Unsupported: There is nothing to pack.
        """
        import onnx
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

        chosen = cast("OrtMatmulNbitsSettings", settings)
        quantizer = MatMulNBitsQuantizer(
            onnx.load(str(source)),
            bits=chosen.bits,
            block_size=chosen.block_size,
            is_symmetric=chosen.is_symmetric,
            accuracy_level=chosen.accuracy_level,
            nodes_to_exclude=kept_float(inputs, chosen.keep_float, source),
        )
        quantizer.process()
        if not any(node.op_type == "MatMulNBits" for node in quantizer.model.model.graph.node):
            raise Unsupported(f"{source.name} has no matrix product with constant weights to pack")
        quantizer.model.save_model_to_file(str(directory / "model.onnx"), is_large(source))
