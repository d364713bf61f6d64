"""Sets, reads back and probes the memory policy of this process by system call; numactl and libnuma are not needed.

Container runtimes block these calls by default (Docker's seccomp profile without CAP_SYS_NICE), and a binding that
did not take effect must never be scored. A policy survives execve(2) and is inherited by children.
Source: set_mempolicy(2), get_mempolicy(2).
"""

import errno
import os
from collections.abc import Callable
from typing import NamedTuple

_NUMBERS = {"x86_64": (239, 238), "aarch64": (236, 237), "riscv64": (236, 237)}
_MASK_BITS = 4096
_WORD_BITS = 64
_MODES = {"bind": 2, "interleave": 3}
_FLAGS = 0xFF00  # MPOL_F_STATIC_NODES and its kin come back beside the mode


class MemoryPolicy(NamedTuple):
    """A policy as the kernel says it: ``default``, ``bind``, ``interleave`` or ``other``, and its nodes."""

    mode: str
    nodes: tuple[int, ...]


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


def parse_policy(text: str) -> MemoryPolicy:
    """Read ``bind:0,1`` or ``interleave:0,1``.

    Raises:
        ValueError: Another mode, or no node ids.
    """
    mode, _, nodes = text.partition(":")
    if mode not in _MODES:
        raise ValueError(f"memory policy {text!r}: write bind:NODES or interleave:NODES")
    return MemoryPolicy(mode, tuple(sorted({int(node) for node in nodes.split(",")})))


def set_policy(policy: MemoryPolicy) -> None:
    """Put a policy in force for this process and read it back.

    Raises:
        OSError: The kernel refuses it, does not know it, or says afterwards that another one is in force.
    """
    numbers = _numbers()
    if numbers is None:
        raise OSError(errno.ENOSYS, "memory policies are not known for this system")
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    mask = (ctypes.c_ulong * (_MASK_BITS // _WORD_BITS))()
    for node in policy.nodes:
        mask[node // _WORD_BITS] |= 1 << node % _WORD_BITS
    number = ctypes.c_long(numbers[1])
    if libc.syscall(number, _MODES[policy.mode], mask, ctypes.c_ulong(_MASK_BITS + 1)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    found = read_policy()
    if found != policy:
        raise OSError(errno.EINVAL, f"asked {policy.mode} {policy.nodes}, in force {found}")


def read_policy() -> MemoryPolicy | None:
    """Return this process's policy; None where it cannot be asked."""
    numbers = _numbers()
    if numbers is None:
        return None
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    mode = ctypes.c_int()
    mask = (ctypes.c_ulong * (_MASK_BITS // _WORD_BITS))()
    size = ctypes.c_ulong(_MASK_BITS + 1)
    number = ctypes.c_long(numbers[0])
    if libc.syscall(number, ctypes.byref(mode), mask, size, ctypes.c_void_p(), ctypes.c_ulong(0)) != 0:
        return None
    names = {0: "default"} | {value: name for name, value in _MODES.items()}
    nodes = tuple(node for node in range(_MASK_BITS) if mask[node // _WORD_BITS] >> node % _WORD_BITS & 1)
    return MemoryPolicy(names.get(mode.value & ~_FLAGS, "other"), nodes)


def _numbers() -> tuple[int, int] | None:
    """Return the numbers of get_mempolicy and set_mempolicy; None where they are unknown."""
    is_linux = hasattr(os, "uname") and os.uname().sysname == "Linux"
    return _NUMBERS.get(os.uname().machine) if is_linux else None


def _system_call() -> Callable[[], int] | None:
    """Return a function that reads the policy and sets it again; None where the numbers are unknown."""
    numbers = _numbers()
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
