"""A content-addressed store on disk: temporary directory, fsync, rename, lock; it knows no build step."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from pydantic import Field

from tuner.artifacts.places import refuse_foreign
from tuner.errors import HostError, UsageError
from tuner.records.base import Record, Scalar
from tuner.records.measurement import Failure
from tuner.records.profile import ArtifactFile

MANIFEST = "artifact.json"
FAILURE = "failure.json"
PROGRAM = "autotune-cpu"
"""The distribution that this program is installed as."""


class Manifest(Record):
    """What an entry holds and how it was made; `key` is the digest of `made_of`, `weight_bytes` the model's size."""

    key: str
    made_of: dict[str, object]
    build_s: float
    created_s: float
    files: tuple[ArtifactFile, ...]
    settings: dict[str, Scalar] = Field(default_factory=dict)
    weight_bytes: int | None = None


class KnownFailure(Record):
    """A build that failed, and the version of this program that tried it: another may succeed."""

    tuner_version: str
    failure: Failure


class Store:
    """Entries below `root`/artifacts by key (sha256 hex)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.directory = root / "artifacts"
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            refuse_foreign(root)
            self.directory.mkdir(mode=0o700, exist_ok=True)
            probe = self.directory / f".writable-{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise HostError(
                f"the cache directory {root} cannot be written ({error.strerror}): name another with --cache-dir"
            ) from error

    def path(self, key: str) -> Path:
        """Return where the entry is or would be."""
        return self.directory / key[:2] / key

    def find(self, key: str) -> Manifest | None:
        """Return the manifest of a whole entry, None if absent; a damaged entry is put aside and counts as absent."""
        directory = self.path(key)
        try:
            text = (directory / MANIFEST).read_bytes()
        except OSError:
            return None
        try:
            manifest = Manifest.from_json(text, source=str(directory / MANIFEST))
            sizes_hold = all((directory / file.path).stat().st_size == file.bytes for file in manifest.files)
        except (OSError, ValueError, UsageError):  # a file is gone, has a name that no file can have; no manifest
            sizes_hold, manifest = False, None
        if manifest is None or not sizes_hold:
            self.discard(key)
            return None
        with contextlib.suppress(OSError):
            os.utime(directory / MANIFEST)  # last use, for the size cap
        return manifest

    def manifests(self) -> Iterator[Manifest]:
        """Yield the readable manifests of all entries."""
        for file in self.directory.glob(f"[0-9a-f][0-9a-f]/[0-9a-f]*/{MANIFEST}"):
            with contextlib.suppress(OSError, UsageError):
                yield Manifest.from_json(file.read_bytes(), source=str(file))

    def failure(self, key: str) -> Failure | None:
        """Return the remembered failure of a build by this version of the program."""
        try:
            known = KnownFailure.from_json((self.path(key) / FAILURE).read_bytes(), source=FAILURE)
        except (OSError, UsageError):  # absent or damaged: then it is simply tried again
            return None
        return known.failure if known.tuner_version == version(PROGRAM) else None

    def remember_failure(self, key: str, failure: Failure) -> None:
        """Remember that this build fails here; a full disk only means that it is tried again."""
        directory = self.path(key)
        known = KnownFailure(tuner_version=version(PROGRAM), failure=failure)
        with contextlib.suppress(OSError):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(directory / FAILURE, known.to_json(indent=1).encode())

    def discard(self, key: str) -> None:
        """Remove an entry."""
        directory = self.path(key)
        aside = directory.with_name(f".gone-{key[:16]}-{time.time_ns():x}")
        with contextlib.suppress(OSError):
            directory.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)

    @contextlib.contextmanager
    def locked(self, key: str) -> Iterator[None]:
        """Hold the entry's lock, so that two tuners build a thing once; released by the kernel if we die."""
        parent = self.path(key).parent
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (parent / f".{key}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def building(self, key: str) -> Iterator[Path]:
        """Give an empty directory beside the entry's place; it is gone afterwards unless it was put in place."""
        parent = self.path(key).parent
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory = parent / f".tmp-{key[:16]}-{os.getpid()}-{time.time_ns():x}"
        directory.mkdir(mode=0o700)
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def put(
        self,
        key: str,
        made_of: dict[str, object],
        directory: Path,
        build_s: float,
        *,
        weight_bytes: int | None = None,
    ) -> Manifest:
        """Move a built `directory` into place, durable before visible.

        Raises:
            HostError: The disk is full or fails; nothing half-written stays.
        """
        files = tuple(
            ArtifactFile(path=str(path.relative_to(directory)), sha256=sha256_of(path), bytes=path.stat().st_size)
            for path in sorted(directory.rglob("*"))
            if path.is_file()
        )
        manifest = Manifest(
            key=key, made_of=made_of, build_s=build_s, created_s=time.time(), files=files, weight_bytes=weight_bytes
        )
        place = self.path(key)
        try:
            for file in files:
                flush(directory / file.path)
            write_atomically(directory / MANIFEST, manifest.to_json(indent=1).encode())
            if place.exists():
                self.discard(key)
            directory.rename(place)
            flush(place.parent)
        except OSError as error:
            raise HostError(
                f"the artifact store {self.directory} cannot be written ({error.strerror}): free space or --cache-dir"
            ) from error
        return manifest


def sha256_of(path: Path) -> str:
    """Return the sha256 (hex) of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush(path: Path) -> None:
    """Fsync a file or directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` whole or not at all: a temporary file beside it, fsync, rename, fsync of the directory.

    Raises:
        OSError: As the system gives it; the temporary file is gone and an existing file is as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    with contextlib.suppress(OSError):
        flush(path.parent)
