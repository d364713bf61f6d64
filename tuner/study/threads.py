"""Loads the libraries of linear algebra for this process; it computes nothing."""

import contextlib
import os
from collections.abc import Iterator

__all__ = ["one_thread"]

VARIABLE = "OPENBLAS_NUM_THREADS"


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Have numpy and scipy, where they are loaded for the first time within, compute in one thread.

    A search solves systems of a few hundred rows: more threads gain nothing there, and where others use the CPUs too,
    they wait for each other for many times as long. The environment is as before afterwards.
    """
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
