"""Options of PyTorch's inductor, for compiling while running and ahead of time; it compiles nothing."""

import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Literal

from tuner.errors import Unsupported

CACHE_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
GEMM_BACKENDS = "CPP,ATEN"


def inductor_options(
    *, max_autotune: bool, freezing: bool, cpp_wrapper: bool = False, simdlen: int | None = None
) -> dict[str, object]:
    """Return inductor's options.

    Args:
        max_autotune: Its C++ templates of matrix products are measured against the library's kernels.
        freezing: Weights become constants, laid out for the CPU.
        cpp_wrapper: The graph is called from C++ instead of Python.
        simdlen: Bits of the vectors that loops use; None: the widest that the CPU has.
    """
    options: dict[str, object] = {"freezing": freezing}
    if cpp_wrapper:
        options["cpp_wrapper"] = True
    if simdlen is not None:
        options["cpp.simdlen"] = simdlen
    if max_autotune:
        options |= {"max_autotune": True, "max_autotune_gemm_backends": GEMM_BACKENDS}
    return options


def compiler() -> str | None:
    """Return the path of the C++ compiler that inductor would start: CXX, else the system's own; None if absent."""
    named = os.environ.get("CXX", "").split() or ["clang++" if sys.platform == "darwin" else "g++"]
    return shutil.which(named[0])


def choose_cache(kind: Literal["disk", "memory"] | None, disk: Path) -> None:
    """Set where inductor works in this process: in memory, or in `disk` where the user names no other folder.

    Raises:
        Unsupported: See `memory_cache`.
    """
    if kind == "memory":
        os.environ[CACHE_VARIABLE] = str(memory_cache())
    os.environ.setdefault(CACHE_VARIABLE, str(disk))


def memory_cache(memory: Path = Path("/dev/shm")) -> Path:  # noqa: S108 - our folder in it is checked
    """Return inductor's cache in a folder of memory that only this user can enter; it is gone after a reboot.

    Raises:
        Unsupported: There is none, it may not hold programs, or the folder is another user's.
    """
    if not memory.is_dir() or os.statvfs(memory).f_flag & os.ST_NOEXEC:
        raise Unsupported(f"compile_cache=memory: {memory} is absent or mounted noexec: compile_cache=disk is left")
    folder = memory / f"autotune-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid() or stat.S_IMODE(state.st_mode) & 0o077:
        raise Unsupported(f"compile_cache=memory: {folder} is not this user's alone: remove it")
    return folder / "inductor"
