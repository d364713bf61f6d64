"""Digests of model files, remembered for big files that did not change; it knows no format."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from tuner.records.base import digest_of

BIG_BYTES = 16 << 20


def digest_files(files: Mapping[str, Path], cache_dir: Path | None = None) -> str:
    """Return one sha256 (hex) over `files`, name in the model to path; where they lie does not matter.

    Args:
        files: Relative names and where they are; links are followed for the content only.
        cache_dir: Where digests of files above 16 MiB are remembered by path, size, mtime and inode; None: nowhere.
    """
    return digest_of(sorted([name, digest_file(path, cache_dir)] for name, path in files.items()))


def digest_file(path: Path, cache_dir: Path | None = None) -> str:
    """Return the sha256 (hex) of a file's content."""
    status = path.stat()
    if cache_dir is None or status.st_size < BIG_BYTES:
        return _hash(path)
    identity = [str(path.resolve()), status.st_size, status.st_mtime_ns, status.st_ino]
    entry = cache_dir / "digests" / f"{digest_of(identity)}.json"
    try:
        known = json.loads(entry.read_text())
        if known["identity"] == identity and isinstance(known["sha256"], str):
            return str(known["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not known yet
    sha256 = _hash(path)
    _remember(entry, {"identity": identity, "sha256": sha256})
    return sha256


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remember(entry: Path, content: Mapping[str, object]) -> None:
    """Write `entry` atomically; a cache that cannot be written only costs time."""
    temporary = entry.with_suffix(f".{os.getpid()}")
    try:
        entry.parent.parent.mkdir(parents=True, exist_ok=True, mode=0o700)  # the mode is for the last part only
        entry.parent.mkdir(exist_ok=True, mode=0o700)
        temporary.write_text(json.dumps(content))
        temporary.replace(entry)
    except OSError:
        temporary.unlink(missing_ok=True)
