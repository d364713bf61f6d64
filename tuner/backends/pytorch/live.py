"""A live module, eager or compiled while it runs."""

import os

import torch

from tuner.backends.base import Batch, Context
from tuner.backends.pytorch import threads
from tuner.backends.pytorch.compiling import compiled, counted
from tuner.backends.pytorch.settings import PyTorchSettings
from tuner.errors import Unsupported
from tuner.models.inductor import CACHE_VARIABLE
from tuner.models.live import open_live
from tuner.models.variants import array_of, layout_of


class LiveSession:
    """A live module; thread counts are set before any of it runs."""

    def __init__(self, context: Context, settings: PyTorchSettings) -> None:
        threads.apply(settings)
        self._settings = settings
        if settings.attention is not None and context.model.kind != "huggingface":
            raise Unsupported("attention is a setting of transformers' models only")
        live = open_live(
            context.model, settings.precision, settings.attention, channels_last=bool(settings.channels_last)
        )
        self._module, self._configuration = live.module, live.configuration
        self.input_names = tuple(spec.name for spec in live.inputs)
        self._is_compiled = settings.compile not in (None, "off")
        self._call = compiled(self._module, settings, context.cache_dir) if self._is_compiled else self._module

    def run(self, batch: Batch) -> Batch:
        """Run one batch; reduced-precision outputs are widened to float32, which numpy can hold."""
        with torch.inference_mode():
            answer = self._call(**{name: torch.from_numpy(array) for name, array in batch.items()})
            return {name: array_of(tensor) for name, tensor in answer.items()}

    def effective(self) -> dict[str, object]:
        """Return thread counts, dtype of the parameters, attention and compiling, as the library says them now.

        How inductor compiled cannot be read from the code it made: that it compiled at all can.
        """
        parameter = next(self._module.parameters(), None)
        precision = None if parameter is None else str(parameter.dtype).removeprefix("torch.")
        is_autocast = self._settings.precision == "bfloat16_autocast" and precision == "float32"
        found: dict[str, object] = {
            **threads.in_force(),
            "precision": "bfloat16_autocast" if is_autocast else precision,
            "attention": getattr(self._configuration, "_attn_implementation", None),
            "channels_last": layout_of(self._module),
            "unverified": [],
        }
        if not self._is_compiled:
            return found | {"compile": "off"}
        asked = self._settings.model_dump(exclude_none=True)
        names = [name for name in ("compile", "freezing", "cpp_wrapper", "dynamic_shapes", "simdlen") if name in asked]
        is_in_memory = os.environ.get(CACHE_VARIABLE, "").startswith("/dev/shm/")  # noqa: S108 - read, not used
        return found | counted() | {"compile_cache": "memory" if is_in_memory else "disk", "unverified": names}

    def close(self) -> None:
        """Drop the module."""
        del self._module, self._call
