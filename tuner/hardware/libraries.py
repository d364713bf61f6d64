"""Finds allocators and OpenMP runtimes by name in system library folders; a path from a config is never used.

It reads ``/etc/ld.so.conf`` and library headers and starts no process. Source: ld.so(8), ldconfig(8), elf(5).
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

_FOLDERS = ("usr/local/lib", "usr/local/lib64", "lib64", "usr/lib64", "lib", "usr/lib")
_HEADER_BYTES = 20
_ALLOCATORS = ("jemalloc", "tcmalloc", "tcmalloc_minimal", "mimalloc")
_RUNTIMES = {
    "gomp": ("gomp",),
    "iomp": ("iomp5",),
    "iomp5": ("iomp5",),
    "omp": ("omp", "omp5"),
    "llvm": ("omp", "omp5"),
}

_PACKAGES = {
    "jemalloc": "libjemalloc2",
    "tcmalloc": "libgoogle-perftools4",
    "tcmalloc_minimal": "libtcmalloc-minimal4",
    "mimalloc": "libmimalloc2.0",
    "gomp": "libgomp1",
    "omp": "libomp5",
    "llvm": "libomp5",
}
"""Debian's."""

ALLOCATORS: tuple[str, ...] = _ALLOCATORS
"""Names that a config's ``allocator`` may have."""
OPENMP_RUNTIMES: tuple[str, ...] = tuple(_RUNTIMES)
"""Names that a config's ``openmp_runtime`` may have."""


def find(name: str, root: Path = Path("/")) -> str | None:
    """Return the path of a library by its name; None if the name is unknown or no usable file is installed.

    Usable means of this interpreter's word size and machine: ``ld.so`` ignores others with no more than a warning.
    Of several versions the highest is taken.

    Args:
        name: One of `ALLOCATORS` or `OPENMP_RUNTIMES`.
        root: Below which the system's folders lie.
    """
    return _find(name, _listing(root))


def absence(name: str) -> str:
    """Return the sentence that a library is not installed, and the way out: the package that brings it, if known."""
    package = _PACKAGES.get(name)
    way_out = f"apt-get install {package} (Debian's name)" if package is not None else "install it"
    return f"{name} is not installed in a system library folder: {way_out}"


def installed(root: Path = Path("/")) -> dict[str, str]:
    """Return the allocators and OpenMP runtimes that are found, by name."""
    listing = _listing(root)
    found = {name: _find(name, listing) for name in (*ALLOCATORS, *OPENMP_RUNTIMES)}
    return {name: path for name, path in found.items() if path is not None}


def _listing(root: Path) -> list[tuple[Path, list[str]]]:
    """Return the library folders with those of their files that could be meant, each folder read once."""
    stems = sorted({*_ALLOCATORS, *(stem for stems in _RUNTIMES.values() for stem in stems)})
    wanted = re.compile(rf"lib(?:{'|'.join(map(re.escape, stems))})\.so")
    found = []
    for folder in library_folders(root):
        try:
            names = [name for name in os.listdir(folder) if wanted.match(name)]  # noqa: PTH208 - names, not paths
        except OSError:
            continue
        if names:
            found.append((folder, names))
    return found


def _find(name: str, listing: Iterable[tuple[Path, list[str]]]) -> str | None:
    """Return the path of the highest usable version in the first folder that has one."""
    stems = (name,) if name in _ALLOCATORS else _RUNTIMES.get(name, ())
    wanted = _header(Path(sys.executable))
    for folder, names in listing:
        for stem in stems:
            for path in _versions(folder, names, stem):
                if wanted is not None and _header(path) == wanted:
                    return str(path)
    return None


def library_folders(root: Path = Path("/")) -> tuple[Path, ...]:
    """Return the existing system library folders: those of ld.so.conf, then the standard ones, multiarch first."""
    triplet = getattr(sys.implementation, "_multiarch", "")
    standard = [f"{folder}/{triplet}" for folder in ("usr/local/lib", "lib", "usr/lib")] if triplet else []
    named = _configured(root, root / "etc/ld.so.conf", 0)
    folders = chain(named, (root / folder for folder in (*standard, *_FOLDERS)))
    return tuple(dict.fromkeys(folder for folder in folders if folder.is_dir()))


def _configured(root: Path, file: Path, depth: int) -> Iterator[Path]:
    """Yield the folders that an ld.so.conf file names, following its includes."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        words = line.partition("#")[0].split()
        if len(words) > 1 and words[0] == "include" and depth < 4:  # noqa: PLR2004 - deeper would be a loop
            for pattern in words[1:]:
                inside = (
                    pattern.lstrip("/") if pattern.startswith("/") else str(file.parent.relative_to(root) / pattern)
                )
                for included in sorted(root.glob(inside)):
                    yield from _configured(root, included, depth + 1)
        elif words and words[0].startswith("/"):
            yield root / words[0].lstrip("/")


def _versions(folder: Path, names: Iterable[str], stem: str) -> list[Path]:
    """Return ``lib<stem>.so`` with and without version numbers, highest version first."""
    pattern = re.compile(rf"lib{re.escape(stem)}\.so((?:\.\d+)*)", re.ASCII)
    return sorted(
        (folder / name for name in names if pattern.fullmatch(name)),
        key=lambda path: ([int(digits) for digits in re.findall(r"\d+", path.name.partition(".so")[2])], path.name),
        reverse=True,
    )


def _header(path: Path) -> bytes | None:
    """Return class, byte order and machine of an ELF file; None if it is none."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEADER_BYTES)
    except OSError:
        return None
    if len(head) < _HEADER_BYTES or not head.startswith(b"\x7fELF"):
        return None
    return head[4:6] + head[18:20]
