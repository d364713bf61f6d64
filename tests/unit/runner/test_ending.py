"""How a worker ended, by exit status and its last lines."""

import pytest

from tuner.runner.ending import classify_exit, last_line

THREADS = "libgomp: Thread creation failed: Resource temporarily unavailable"
DUPLICATE = (
    "OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.\n"
    "/opt/a/libiomp5.so, /usr/lib/libomp.so.5"
)


@pytest.mark.parametrize(
    ("returncode", "tail", "kind"),
    [
        (-9, "", "out_of_memory"),
        (-4, "", "illegal_instruction"),
        (-6, "", "crash"),
        (-11, "", "crash"),
        (-7, "", "crash"),
        (-15, "", "crash"),
        (-34, "", "crash"),
        (-6, "terminate called after throwing an instance of 'std::bad_alloc'", "out_of_memory"),
        (1, "", "crash"),
        (1, THREADS, "error"),
        (1, "RuntimeError: can't start new thread", "error"),
        (-6, "OpenBLAS blas_thread_init: pthread_create failed for thread 3", "error"),
        (1, "MemoryError", "out_of_memory"),
        (137, "mmap: Cannot allocate memory", "out_of_memory"),
        (0, "", "crash"),
        (None, "", "crash"),
        (-6, DUPLICATE, "crash"),
    ],
)
def test_kind(returncode, tail, kind):
    """Every end has its kind (case C59)."""
    assert classify_exit(returncode, tail)[0] == kind


@pytest.mark.parametrize(
    ("returncode", "tail", "part"),
    [
        (-9, "", "SIGKILL: most likely the out-of-memory killer"),
        (-4, "", "SIGILL: the library uses an instruction this CPU does not have"),
        (-6, "Assertion `x' failed.", "SIGABRT: Assertion `x' failed."),
        (-11, "", "SIGSEGV: nothing was printed"),
        (-34, "", "SIGRTMIN"),
        (1, "usage\nImportError: libfoo.so\n\n", "exit status 1: ImportError: libfoo.so"),
        (1, f"warning\n{THREADS}\nmore", f"(pids or memory limit): {THREADS}"),
        (0, "", "exit status 0 and without an answer"),
        (None, "", "still ran"),
    ],
)
def test_sentence(returncode, tail, part):
    """The sentence names the signal, the limit that hit, or the last line."""
    assert part in classify_exit(returncode, tail)[1]


def test_duplicate_openmp_runtime_names_both():
    """Two OpenMP runtimes in one process are both named (case C21)."""
    assert "/opt/a/libiomp5.so, /usr/lib/libomp.so.5" in classify_exit(-6, DUPLICATE)[1]


def test_sentence_is_one_line():
    """Whatever was printed, the sentence is one line."""
    assert classify_exit(-6, "a\nb\r\nc\n")[1].count("\n") == 0


def test_last_line_is_bounded():
    """A last line of a megabyte is cut."""
    assert len(last_line("x" * 1_000_000)) == 300
