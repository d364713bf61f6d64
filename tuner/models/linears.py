"""Int8 for the linear layers of a live module, by torchao; and that library kept out of everything else.

Torchao takes seconds to import and says of its parts for GPUs that they do not load. Transformers imports it into every
process that opens a model, wherever it is installed.
"""

import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tuner.errors import Unsupported

if TYPE_CHECKING:
    import torch

LIBRARY = "torchao"
LEAST_OUTPUTS = 64
"""Layers with fewer outputs (heads of classifiers) stay as they are: they cost fidelity and no time."""


@contextlib.contextmanager
def unseen(directory: Path) -> Iterator[None]:
    """Hide torchao while transformers opens a directory, unless the model in it was quantized beforehand."""
    if LIBRARY in sys.modules or _is_quantized(directory):
        yield
        return
    sys.modules[LIBRARY] = None  # type: ignore[assignment] # as the import system documents it: no such module
    try:
        yield
    finally:
        sys.modules.pop(LIBRARY, None)


def _is_quantized(directory: Path) -> bool:
    try:
        return "quantization_config" in json.loads((directory / "config.json").read_text())
    except (OSError, ValueError):
        return False


def quantize_linears(module: "torch.nn.Module") -> int:
    """Make the products of `module` int8 in place: weights with a scale a row, activations with one a token each call.

    Returns:
        How many layers that concerns.

    Raises:
        Unsupported: There is no layer to quantize.
    """
    import torch

    for name in (LIBRARY, "torch.utils._pytree"):
        logging.getLogger(name).setLevel(logging.ERROR)
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_
    from torchao.utils import unwrap_tensor_subclass

    def is_large(layer: "torch.nn.Module", _: str) -> bool:
        return isinstance(layer, torch.nn.Linear) and cast("int", layer.out_features) >= LEAST_OUTPUTS

    n_layers = sum(is_large(layer, "") for layer in module.modules())
    if not n_layers:
        raise Unsupported(f"int8: the model has no linear layer of {LEAST_OUTPUTS} outputs or more")
    quantize_(module, Int8DynamicActivationInt8WeightConfig(), filter_fn=is_large)
    unwrap_tensor_subclass(module)
    return n_layers
