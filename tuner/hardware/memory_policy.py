"""Asks once whether memory may be bound to nodes; it leaves the process's policy as it was.

Container runtimes block these calls by default (Docker's seccomp profile without CAP_SYS_NICE), and a binding that
did not take effect must never be scored. Source: set_mempolicy(2), get_mempolicy(2).
"""

import errno
import os
from collections.abc import Callable
from typing import NamedTuple

_NUMBERS = {"x86_64": (239, 238), "aarch64": (236, 237), "riscv64": (236, 237)}
_MASK_BITS = 4096


class PolicyProbe(NamedTuple):
    """Whether binding is permitted (None: cannot be asked here) and the errno of a refusal."""

    is_permitted: bool | None
    errno: int = 0


def probe_memory_policy(set_again: Callable[[], int] | None = None) -> PolicyProbe:
    """Set this process's memory policy to what it is already.

    Args:
        set_again: Does that and returns 0 or an errno; the system call when None.
    """
    set_again = set_again or _system_call()
    if set_again is None:
        return PolicyProbe(None)
    number = set_again()
    return PolicyProbe(number == 0, number)


def describe(probe: PolicyProbe) -> str:
    """Return what was seen, for a notice."""
    return f"set_mempolicy: {os.strerror(probe.errno)} ({errno.errorcode.get(probe.errno, probe.errno)})"


def _system_call() -> Callable[[], int] | None:
    """Return a function that reads the policy and sets it again; None where the numbers are unknown."""
    numbers = _NUMBERS.get(os.uname().machine) if hasattr(os, "uname") and os.uname().sysname == "Linux" else None
    if numbers is None:
        return None
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    mode = ctypes.c_int()
    mask = (ctypes.c_ulong * (_MASK_BITS // 64))()
    size = ctypes.c_ulong(_MASK_BITS + 1)

    def set_again() -> int:
        got = libc.syscall(
            ctypes.c_long(numbers[0]), ctypes.byref(mode), mask, size, ctypes.c_void_p(), ctypes.c_ulong(0)
        )
        if got != 0:
            return ctypes.get_errno()
        is_empty = not any(mask)
        nodes = ctypes.c_void_p() if is_empty else mask
        count = ctypes.c_ulong(0) if is_empty else size
        done = libc.syscall(ctypes.c_long(numbers[1]), mode, nodes, count)
        return 0 if done == 0 else ctypes.get_errno()

    return set_again
