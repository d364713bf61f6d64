"""Calls a module that answers a dict; other numbers or another layout for it: bfloat16, autocast, channels last."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from tuner.errors import Unsupported

if TYPE_CHECKING:
    import torch

Precision = Literal["float32", "bfloat16", "bfloat16_autocast"]
"""``bfloat16``: weights and all that is computed; ``bfloat16_autocast``: what PyTorch's autocast picks."""
IMAGE_RANK = 4


def adapted(
    module: "torch.nn.Module", precision: Precision | None, *, channels_last: bool = False
) -> "torch.nn.Module":
    """Return a module in another precision or layout; itself where nothing is asked.

    Args:
        module: Answers a dict of tensors.
        precision: None leaves every tensor as it is.
        channels_last: Whether weights and inputs of convolutions lie channels last.

    Raises:
        Unsupported: Channels last of a model without a convolution of images.
    """
    import torch

    if precision == "bfloat16":
        module = module.to(torch.bfloat16)
    elif precision is not None:
        module = module.float()
    if channels_last:
        if not is_convolutional(module):
            raise Unsupported("channels_last: the model has no convolution of images")
        module = module.to(memory_format=torch.channels_last)
    elif precision is None or precision == "float32":
        return module
    return _fitting(module, precision, channels_last=channels_last)


def _fitting(module: "torch.nn.Module", precision: Precision | None, *, channels_last: bool) -> "torch.nn.Module":
    """Return a module that fits its inputs to the weights of `module`."""
    import torch

    class Adapted(torch.nn.Module):  # type: ignore[misc]
        """Fits the inputs to the weights."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, **inputs: "torch.Tensor") -> "dict[str, torch.Tensor]":
            given = {name: self._fitted(tensor) for name, tensor in inputs.items()}
            if precision != "bfloat16_autocast":
                return cast("dict[str, torch.Tensor]", self.inner(**given))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return cast("dict[str, torch.Tensor]", self.inner(**given))

        def _fitted(self, tensor: "torch.Tensor") -> "torch.Tensor":
            if precision == "bfloat16" and tensor.is_floating_point():
                tensor = tensor.to(torch.bfloat16)
            if channels_last and tensor.ndim == IMAGE_RANK:
                tensor = tensor.contiguous(memory_format=torch.channels_last)
            return tensor

    return Adapted().eval()


def is_convolutional(module: "torch.nn.Module") -> bool:
    """Say whether a module convolves images."""
    import torch

    return any(isinstance(part, torch.nn.Conv2d) for part in module.modules())


def layout_of(module: "torch.nn.Module") -> bool | None:
    """Say whether the weights of convolutions lie channels last; None where shapes do not tell or there are none."""
    import torch

    weights = [part.weight for part in module.modules() if isinstance(part, torch.nn.Conv2d)]
    last = {weight.is_contiguous(memory_format=torch.channels_last) for weight in weights if not _is_either(weight)}
    return last == {True} if last else None


def _is_either(weight: "torch.Tensor") -> bool:
    import torch

    return bool(weight.is_contiguous() and weight.is_contiguous(memory_format=torch.channels_last))


def answer_of(module: "torch.nn.Module", batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what a module that answers a dict answers, as arrays."""
    import torch

    with torch.inference_mode():
        answer = module(**{name: torch.from_numpy(array) for name, array in batch.items()})
    return {name: array_of(tensor) for name, tensor in answer.items()}


def array_of(tensor: "torch.Tensor") -> np.ndarray:
    """Return a tensor as an array; floats that numpy does not have (bfloat16) and float16 as float32."""
    import torch

    is_reduced = tensor.is_floating_point() and tensor.dtype not in (torch.float32, torch.float64)
    return cast("np.ndarray", (tensor.float() if is_reduced else tensor).numpy())
