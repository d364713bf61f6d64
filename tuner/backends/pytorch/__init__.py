"""PyTorch: eager, compiled while it runs, and from packages of machine code; one backend, its parts in files."""

from tuner.backends.pytorch.engine import PyTorch
from tuner.backends.pytorch.settings import PyTorchSettings

__all__ = ["PyTorch", "PyTorchSettings"]
