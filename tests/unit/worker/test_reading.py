"""Reading back what is in force, from texts of the kernel."""

import os
from pathlib import Path

import pytest

from tuner.worker.reading import (
    cpu_list,
    escaped_threads,
    mapped_libraries,
    own_cpus,
    process_age_s,
    settings_not_applied,
    thread_masks,
)

PREFIX = "7f0000000000-7f0000001000 r-xp 00000000 08:01 1234567                    "


def maps(*paths):
    """Return the text of /proc/PID/maps with these files mapped twice each."""
    return "".join(f"{PREFIX}{path}\n" for path in paths for _ in range(2)) + "7ffc0000-7ffd0000 rw-p 0 0:0 0 [stack]\n"


@pytest.mark.parametrize(("text", "cpus"), [("0", (0,)), ("0-3,8", (0, 1, 2, 3, 8)), ("5,7-8", (5, 7, 8))])
def test_cpu_list(text, cpus):
    """The kernel's list syntax."""
    assert cpu_list(text) == cpus


def test_mapped_libraries():
    """Known libraries are found by name, others are left out."""
    text = maps("/usr/lib/libgomp.so.1.0.0", "/usr/lib/libc.so.6", "/opt/torch/lib/libtorch_cpu.so")
    assert mapped_libraries(text) == {
        "gomp": "/usr/lib/libgomp.so.1.0.0",
        "torch_cpu": "/opt/torch/lib/libtorch_cpu.so",
    }


def test_two_copies_of_an_openmp_runtime():
    """Two different files of one OpenMP runtime are both told (case C21)."""
    text = maps("/usr/lib/libgomp.so.1", "/opt/torch/lib/libgomp-a34b3233.so.1")
    assert mapped_libraries(text) == {
        "gomp": "/usr/lib/libgomp.so.1",
        "gomp#2": "/opt/torch/lib/libgomp-a34b3233.so.1",
    }


def test_path_with_spaces():
    """A directory with spaces does not hide a library."""
    assert mapped_libraries(maps("/my env/lib/libjemalloc.so.2")) == {"jemalloc": "/my env/lib/libjemalloc.so.2"}


def test_nothing_mapped():
    """A process without known libraries has none."""
    assert mapped_libraries(maps()) == {}


def test_masks_of_threads(tmp_path):
    """Every thread's mask is read from its status; a thread that ended is passed over."""
    for thread, mask in ((10, "0-1"), (11, "1")):
        (tmp_path / str(thread)).mkdir()
        (tmp_path / str(thread) / "status").write_text(f"Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t{mask}\n")
    (tmp_path / "12").mkdir()
    assert thread_masks(tmp_path) == {10: (0, 1), 11: (1,)}


def test_masks_without_proc(tmp_path):
    """Where there is no /proc, nothing is known."""
    assert thread_masks(tmp_path / "absent") == {}


def test_own_threads_have_the_own_mask():
    """The kernel's two sources agree on this process."""
    assert thread_masks()[os.getpid()] == own_cpus()


def test_escaped_threads():
    """Only threads with a CPU outside the mask have escaped."""
    assert escaped_threads({1: (0, 1), 2: (1,), 3: (1, 2)}, (0, 1)) == {3: (1, 2)}


@pytest.mark.parametrize(
    ("asked", "effective", "texts"),
    [
        ({"threads": 2}, {"threads": 2}, ()),
        ({"threads": 2}, {"threads": 1}, ("threads: asked 2, in force 1",)),
        ({"threads": None}, {"threads": 1}, ()),
        ({"arena": True}, {}, ()),
        ({"arena": True}, {"arena": None}, ()),
        ({"spin": False}, {"spin": True}, ("spin: asked False, in force True",)),
    ],
)
def test_settings_not_applied(asked, effective, texts):
    """Asked and reads back otherwise is told; what cannot be read back is not."""
    assert settings_not_applied(asked, effective) == texts


def test_process_age():
    """The start, in clock ticks, is the 22nd field, also with a name that holds brackets and spaces."""
    ticks = os.sysconf("SC_CLK_TCK")
    stat = f"1 (a) b) (c) S {' '.join(['0'] * 18)} {100 * ticks} 0 0"
    assert process_age_s(stat, uptime_s=103.5) == pytest.approx(3.5)


def test_process_age_is_never_negative():
    """A clock that is a tick behind gives zero."""
    stat = Path("/proc/self/stat").read_text()
    assert process_age_s(stat, uptime_s=0.0) == 0.0
