"""A live module of transformers, eager or compiled while it runs."""

from typing import cast

import numpy as np
import torch

from tuner.backends.base import Batch, Context
from tuner.backends.pytorch import threads
from tuner.backends.pytorch.compiling import compiled, counted
from tuner.backends.pytorch.settings import PyTorchSettings
from tuner.models.live import live_module, text_inputs_of


class LiveSession:
    """A live module; thread counts are set before any of it runs."""

    def __init__(self, context: Context, settings: PyTorchSettings) -> None:
        threads.apply(settings)
        self._settings = settings
        self._module = live_module(context.model, settings.precision or "float32", settings.attention)
        self.input_names = text_inputs_of(self._module)
        self._is_compiled = settings.compile not in (None, "off")
        self._call = compiled(self._module, settings, context.cache_dir) if self._is_compiled else self._module
        self._is_reduced = settings.precision == "bfloat16"

    def run(self, batch: Batch) -> Batch:
        """Run one batch; reduced-precision outputs are widened to float32, which numpy can hold."""
        with torch.inference_mode():
            answer = self._call(**{name: torch.from_numpy(array) for name, array in batch.items()})
            if self._is_reduced:
                return {name: _widened(tensor) for name, tensor in answer.items()}
        return {name: tensor.numpy() for name, tensor in answer.items()}

    def effective(self) -> dict[str, object]:
        """Return thread counts, dtype of the parameters, attention and compiling, as the library says them now.

        How inductor compiled cannot be read from the code it made: that it compiled at all can.
        """
        parameter = next(self._module.parameters())
        configuration = self._module.inner.config
        found: dict[str, object] = {
            **threads.in_force(),
            "precision": str(parameter.dtype).removeprefix("torch."),
            "attention": getattr(configuration, "_attn_implementation", None),
            "unverified": [],
        }
        if not self._is_compiled:
            return found | {"compile": "off"}
        asked = self._settings.model_dump(exclude_none=True)
        names = [name for name in ("compile", "freezing", "cpp_wrapper", "dynamic_shapes") if name in asked]
        return found | counted() | {"unverified": names}

    def close(self) -> None:
        """Drop the module."""
        del self._module, self._call


def _widened(tensor: torch.Tensor) -> np.ndarray:
    return cast("np.ndarray", tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy())
