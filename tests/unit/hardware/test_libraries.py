"""Allocators and OpenMP runtimes are found by name in system folders, and nothing else is."""

import sys
from pathlib import Path

import pytest

from tuner.hardware import libraries

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ELF libraries")


@pytest.fixture
def place(tmp_path):
    """Return a function that writes a library of this machine's kind below a root, and returns the root."""
    head = Path(sys.executable).read_bytes()[:64]

    def placed(*names, head=head):
        for name in names:
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(head)
        return tmp_path

    return placed


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("jemalloc", "usr/lib/libjemalloc.so.2"),
        ("tcmalloc", "usr/lib64/libtcmalloc.so.4"),
        ("tcmalloc_minimal", "usr/local/lib/libtcmalloc_minimal.so.4.5.9"),
        ("mimalloc", "lib/libmimalloc.so"),
        ("gomp", "usr/lib/libgomp.so.1"),
        ("iomp", "usr/lib/libiomp5.so"),
        ("omp", "usr/lib/libomp.so.5"),
    ],
)
def test_a_library_is_found_by_its_name(name, file, place):
    """Any soname in any standard folder will do."""
    root = place(file)

    assert str(root / file) == libraries.find(name, root)


def test_the_highest_version_is_taken(place):
    """Versions compare as numbers."""
    root = place("usr/lib/libjemalloc.so.2", "usr/lib/libjemalloc.so.10", "usr/lib/libjemalloc.so")

    assert str(root / "usr/lib/libjemalloc.so.10") == libraries.find("jemalloc", root)


def test_names_do_not_match_by_beginning(place):
    """Tcmalloc is not tcmalloc_minimal."""
    assert libraries.find("tcmalloc", place("usr/lib/libtcmalloc_minimal.so.4")) is None


@pytest.mark.parametrize("name", ["/opt/evil.so", "../lib/x", "libjemalloc.so.2", "", "c", "jemalloc.so"])
def test_only_listed_names_are_looked_up(name, place):
    """A path or an unknown name from a profile finds nothing."""
    assert libraries.find(name, place("usr/lib/libjemalloc.so.2", "opt/evil.so", "usr/lib/libc.so.6")) is None


def test_a_library_of_another_machine_is_passed_over(place):
    """ld.so would ignore a 32-bit file with no more than a warning."""
    place("usr/local/lib/libjemalloc.so.2", head=b"\x7fELF\x01\x01\x01" + bytes(11) + b"\x03\x00" + bytes(44))
    root = place("usr/lib/libjemalloc.so.2")

    assert str(root / "usr/lib/libjemalloc.so.2") == libraries.find("jemalloc", root)


def test_a_text_file_is_no_library(place):
    """Linker scripts and empty files are passed over."""
    assert libraries.find("jemalloc", place("usr/lib/libjemalloc.so", head=b"INPUT(x)")) is None


def test_folders_of_the_loaders_configuration_are_searched(place):
    """ld.so.conf and what it includes name further folders."""
    root = place("opt/j/libjemalloc.so.2")
    (root / "etc/ld.so.conf.d").mkdir(parents=True)
    (root / "etc/ld.so.conf").write_text("include ld.so.conf.d/*.conf\n")
    (root / "etc/ld.so.conf.d/j.conf").write_text("# local\n/opt/j\n")

    assert str(root / "opt/j/libjemalloc.so.2") == libraries.find("jemalloc", root)


def test_a_configuration_that_includes_itself_ends(place):
    """A loop of includes is cut."""
    root = place("usr/lib/libmimalloc.so.2")
    (root / "etc").mkdir()
    (root / "etc/ld.so.conf").write_text("include /etc/ld.so.conf\n")

    assert str(root / "usr/lib/libmimalloc.so.2") == libraries.find("mimalloc", root)


def test_installed_names_only_what_is_there(place):
    """The list for a search space."""
    root = place("usr/lib/libjemalloc.so.2")

    assert {"jemalloc": str(root / "usr/lib/libjemalloc.so.2")} == libraries.installed(root)
