"""Compiles a model ahead of time as `aot_inductor` does, after torchao made its linear layers int8."""

from typing import TYPE_CHECKING, ClassVar, Literal

from tuner.models.linears import quantize_linears
from tuner.records import base
from tuner.records.model import Prepared
from tuner.steps.aot_inductor import AotInductor, AotInductorSettings

if TYPE_CHECKING:
    from tuner.models.live import Live

__all__ = ["TorchaoInt8", "TorchaoInt8Settings"]


class TorchaoInt8Settings(AotInductorSettings):
    """How the code is made; what is not int8 stays float32.

    Attributes:
        precision: Of the rest.
    """

    precision: Literal["float32"] = "float32"


class TorchaoInt8(AotInductor):
    """The step."""

    name: ClassVar[str] = "torchao_int8"
    Settings: ClassVar[type[base.Settings]] = TorchaoInt8Settings
    distributions: ClassVar[tuple[str, ...]] = ("torchao", "torch", "transformers")
    extra: ClassVar[str] = "quant"
    computes: ClassVar[str | None] = "int8_float32"

    def opened(self, prepared: Prepared, chosen: AotInductorSettings) -> "Live":
        """Open the model and quantize it.

        Raises:
            Unsupported: It cannot be opened so, or has no linear layers.
        """
        live = super().opened(prepared, chosen)
        quantize_linears(live.module)
        return live
