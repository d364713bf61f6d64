"""PyTorch eager on a Hugging Face directory; compiled PyTorch is not here."""

from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from tuner.backends.base import Batch, Context, Settings
from tuner.errors import Unsupported
from tuner.plugins import installed_versions, space_file
from tuner.records.model import ModelFacts
from tuner.records.workload import Workload

if TYPE_CHECKING:
    import torch

__all__ = ["PyTorch", "PyTorchSession", "PyTorchSettings"]


class PyTorchSettings(Settings):
    """Knobs of eager PyTorch; None leaves the library's default.

    Attributes:
        precision: Of the weights and the computation; None is float32.
        threads: ``torch.set_num_threads``, the OpenMP team.
        interop_threads: ``torch.set_num_interop_threads``.
        attention: transformers' attention implementation.
    """

    precision: Literal["float32", "bfloat16"] | None = None
    threads: int | None = Field(default=None, ge=1)
    interop_threads: int | None = Field(default=None, ge=1)
    attention: Literal["sdpa", "eager"] | None = None


class PyTorchSession:
    """A live module; thread counts are set before any of it runs."""

    def __init__(self, context: Context, settings: PyTorchSettings) -> None:
        import torch

        from tuner.models.live import live_module, text_inputs_of

        if settings.interop_threads is not None:
            torch.set_num_interop_threads(settings.interop_threads)
        if settings.threads is not None:
            torch.set_num_threads(settings.threads)
        self._module = live_module(context.model, settings.precision or "float32", settings.attention)
        self.input_names = text_inputs_of(self._module)
        self._torch = torch
        self._from_numpy = torch.from_numpy
        self._inference_mode = torch.inference_mode
        self._is_reduced = settings.precision == "bfloat16"

    def run(self, batch: Batch) -> Batch:
        """Run one batch; reduced-precision outputs are widened to float32, which numpy can hold."""
        with self._inference_mode():
            answer = self._module(**{name: self._from_numpy(array) for name, array in batch.items()})
            if self._is_reduced:
                return {name: _widened(tensor) for name, tensor in answer.items()}
        return {name: tensor.numpy() for name, tensor in answer.items()}

    def effective(self) -> dict[str, object]:
        """Return thread counts, dtype of the parameters and attention, as the library says them now."""
        torch = self._torch
        parameter = next(self._module.parameters())
        configuration = self._module.inner.config
        return {
            "threads": torch.get_num_threads(),
            "interop_threads": torch.get_num_interop_threads(),
            "precision": str(parameter.dtype).removeprefix("torch."),
            "attention": getattr(configuration, "_attn_implementation", None),
            "unverified": [],
        }

    def close(self) -> None:
        """Drop the module."""
        del self._module


class PyTorch:
    """Runs Hugging Face models as every user of transformers does."""

    name: ClassVar[str] = "pytorch"
    SessionSettings: ClassVar[type[Settings]] = PyTorchSettings

    def installed(self) -> dict[str, str] | None:
        """Return versions of torch and transformers."""
        return installed_versions("torch", "transformers")

    def supports(self, model: ModelFacts, workload: Workload) -> str | None:  # noqa: ARG002 - part of the protocol
        """Take Hugging Face directories only."""
        return None if model.kind == "huggingface" else f"PyTorch eager cannot open models of kind {model.kind}"

    def space(self) -> Traversable:
        """Return its search space."""
        return space_file("pytorch.toml")

    def open(self, artifact: Path, settings: Settings, context: Context) -> PyTorchSession:
        """Open the model's source.

        Raises:
            Unsupported: The artifact is not the source, or transformers cannot open it so.
        """
        if artifact != Path(context.model.path):
            raise Unsupported(f"PyTorch eager opens the model's source, not the artifact {artifact.name}")
        return PyTorchSession(context, cast("PyTorchSettings", settings))


def _widened(tensor: "torch.Tensor") -> np.ndarray:
    array: np.ndarray = tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy()
    return array
