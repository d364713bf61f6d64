"""Knobs of PyTorch sessions; what each does is in the modules that read it."""

from typing import Literal

from pydantic import Field

from tuner.backends.base import Settings


class PyTorchSettings(Settings):
    """Knobs of a session; None leaves the library's default.

    Attributes:
        precision: Of the weights and the computation; ``bfloat16_autocast`` keeps the weights and leaves it to PyTorch
            what is computed in bfloat16; None is float32. A package brings its own.
        threads: ``torch.set_num_threads``, the OpenMP team.
        interop_threads: ``torch.set_num_interop_threads``.
        attention: transformers' attention implementation.
        channels_last: Weights and inputs of convolutions lie channels last.
        float32_matmul: ``torch.set_float32_matmul_precision``: ``medium`` multiplies float32 in bfloat16.
        compile: ``torch.compile`` in the first calls: with templates chosen by measuring them, or without.
        freezing: Weights become constants of the compiled code, laid out for the CPU.
        cpp_wrapper: The compiled graph is called from C++ instead of Python.
        dynamic_shapes: One compiled graph for all shapes instead of one a shape.
        simdlen: Bits of the vectors that compiled loops use; None: the widest that the CPU has.
        compile_cache: Where inductor keeps what it compiled: ``memory`` is a folder of ours in /dev/shm.
    """

    precision: Literal["float32", "bfloat16", "bfloat16_autocast"] | None = None
    threads: int | None = Field(default=None, ge=1)
    interop_threads: int | None = Field(default=None, ge=1)
    attention: Literal["sdpa", "eager"] | None = None
    channels_last: bool | None = None
    float32_matmul: Literal["highest", "high", "medium"] | None = None
    compile: Literal["off", "default", "max_autotune"] | None = None
    freezing: bool | None = None
    cpp_wrapper: bool | None = None
    dynamic_shapes: bool | None = None
    simdlen: Literal[256, 512] | None = None
    compile_cache: Literal["disk", "memory"] | None = None
