"""Compiles a module with inductor in the worker, into the cache directory, and counts what that took."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tuner.backends.pytorch.settings import PyTorchSettings
from tuner.errors import Unsupported
from tuner.models.inductor import choose_cache, compiler, inductor_options


def compiled(module: torch.nn.Module, settings: PyTorchSettings, cache_dir: str) -> Callable[..., Any]:
    """Return the call of `module` that compiles itself for every new shape (or once, with dynamic shapes).

    Raises:
        Unsupported: There is no C++ compiler, or no memory cache that may hold programs.
    """
    if compiler() is None:
        raise Unsupported("torch.compile needs a C++ compiler: install g++, or name one in CXX")
    choose_cache(settings.compile_cache, Path(cache_dir) / "inductor")
    warnings.filterwarnings("ignore", module=r"torch\..*")  # about inductor's code, not the model
    options = inductor_options(
        max_autotune=settings.compile == "max_autotune",
        freezing=bool(settings.freezing),
        cpp_wrapper=bool(settings.cpp_wrapper),
        simdlen=settings.simdlen,
    )
    call: Callable[..., Any] = torch.compile(module, options=options, dynamic=settings.dynamic_shapes)
    return call


def counted() -> dict[str, object]:
    """Return what compiling has taken in this process so far: seconds, graphs, recompiles, graphs from the cache."""
    from torch._dynamo.utils import compilation_time_metrics, counters

    seconds = sum(compilation_time_metrics.get("_compile.compile_inner", ()))
    return {
        "compile_s": round(float(seconds), 3),
        "n_graphs": int(counters["stats"]["unique_graphs"]),
        "n_recompiles": max(0, int(counters["frames"]["ok"]) - 1),
        "n_cache_hits": int(counters["inductor"]["fxgraph_cache_hit"]),
    }
