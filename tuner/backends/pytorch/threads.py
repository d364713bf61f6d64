"""Sets thread counts and float32 arithmetic of torch before anything of it runs, and reads them back."""

import torch

from tuner.backends.pytorch.settings import PyTorchSettings


def apply(settings: PyTorchSettings) -> None:
    """Set what was asked, nothing else; the interop pool can be set once in a process."""
    if settings.interop_threads is not None:
        torch.set_num_interop_threads(settings.interop_threads)
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    if settings.float32_matmul is not None:
        torch.set_float32_matmul_precision(settings.float32_matmul)


def in_force() -> dict[str, object]:
    """Return what torch says now."""
    return {
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "float32_matmul": torch.get_float32_matmul_precision(),
    }
