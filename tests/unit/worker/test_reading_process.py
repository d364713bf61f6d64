"""What a worker was started with, and which preloaded libraries are really mapped."""

import pytest

from tuner.worker.reading import preloads_not_mapped, started_with

LINE = "7f0000000000-7f0000001000 r-xp 00000000 fe:00 123                        {path}\n"


@pytest.fixture
def maps():
    """Return a function that writes the text of /proc/PID/maps with these files in it."""

    def text(*paths):
        return "".join(LINE.format(path=path) for path in paths)

    return text


def test_environment_of_the_start(tmp_path):
    """Names and values come as the process got them; a value may hold an equals sign."""
    file = tmp_path / "environ"
    file.write_bytes(b"OMP_WAIT_POLICY=passive\0GLIBC_TUNABLES=glibc.malloc.hugetlb=1\0\0")
    expected = {"OMP_WAIT_POLICY": "passive", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    assert started_with(file) == expected


def test_no_proc(tmp_path):
    """Without /proc nothing is known, which is no failure."""
    assert started_with(tmp_path / "absent") == {}


def test_mapped_preload(maps):
    """A preload counts if its file is mapped."""
    assert preloads_not_mapped({"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"}, maps("/usr/lib/libjemalloc.so.2")) == ()


def test_mapped_through_a_link(maps, tmp_path):
    """The kernel names the file that a link points to."""
    real, link = tmp_path / "libtcmalloc.so.4.5", tmp_path / "libtcmalloc.so.4"
    real.touch()
    link.symlink_to(real)
    assert preloads_not_mapped({"LD_PRELOAD": str(link)}, maps(real.resolve())) == ()


def test_ignored_preload(maps):
    """A preload that ld.so passed over is named."""
    environment = {"LD_PRELOAD": "/lib/a.so:/nonexistent.so"}
    assert preloads_not_mapped(environment, maps("/lib/a.so")) == ("/nonexistent.so",)


def test_nothing_preloaded(maps):
    """Without LD_PRELOAD nothing can be missing."""
    assert preloads_not_mapped({}, maps()) == ()
