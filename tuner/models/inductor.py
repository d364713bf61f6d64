"""Options of PyTorch's inductor, for compiling while running and ahead of time; it compiles nothing."""

import os
import shutil
import sys

GEMM_BACKENDS = "CPP,ATEN"


def inductor_options(*, max_autotune: bool, freezing: bool, cpp_wrapper: bool = False) -> dict[str, object]:
    """Return inductor's options.

    Args:
        max_autotune: Its C++ templates of matrix products are measured against the library's kernels.
        freezing: Weights become constants, laid out for the CPU.
        cpp_wrapper: The graph is called from C++ instead of Python.
    """
    options: dict[str, object] = {"freezing": freezing}
    if cpp_wrapper:
        options["cpp_wrapper"] = True
    if max_autotune:
        options |= {"max_autotune": True, "max_autotune_gemm_backends": GEMM_BACKENDS}
    return options


def compiler() -> str | None:
    """Return the path of the C++ compiler that inductor would start: CXX, else the system's own; None if absent."""
    named = os.environ.get("CXX", "").split() or ["clang++" if sys.platform == "darwin" else "g++"]
    return shutil.which(named[0])
