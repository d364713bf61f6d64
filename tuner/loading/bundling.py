"""Copies a profile with its artifacts into one directory that loads from any place; the model itself is not in it."""

import os
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import Field

from tuner.artifacts.store import sha256_of
from tuner.errors import HostError, ProfileMismatch, UsageError
from tuner.loading.files import file_problem, read_profile
from tuner.records.base import Record
from tuner.records.profile import ArtifactFile, Profile

BUNDLE = "bundle.json"
PROFILE = "profile.json"
SUMS = "SHA256SUMS"
_SCHEMA: Literal["tuner.bundle/1"] = "tuner.bundle/1"


class Bundle(Record):
    """What is in a bundle: every file but this one and the sums, paths relative to it."""

    schema_: Literal["tuner.bundle/1"] = Field(default=_SCHEMA, alias="schema")
    created_at: str
    tuner_version: str
    model_sha256: str
    files: tuple[ArtifactFile, ...]


def make_bundle(profile: Path, directory: Path, cache: Path) -> Bundle:
    """Copy `profile` and the artifact of its best config to `directory`, which appears whole or not at all.

    An earlier bundle there is replaced; ``SHA256SUMS`` can be checked with ``sha256sum -c``.

    Raises:
        UsageError: `directory` holds something else, or `profile` is not a profile.
        ProfileMismatch: An artifact is missing or has another content.
        HostError: It cannot be written; nothing is left behind.
    """
    loaded = read_profile(profile)
    directory = directory.absolute()
    refuse_foreign(directory)
    base = artifact_base(loaded, (profile.absolute().parent, cache))
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    except OSError as error:
        raise HostError(f"{directory.parent} cannot be written ({error.strerror}): name another place") from error
    try:
        bundle = _fill(draft, profile, loaded, base)
        _replace(draft, directory)
    except OSError as error:
        raise HostError(f"{directory} cannot be written ({error.strerror}): free space or name another") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return bundle


def refuse_foreign(directory: Path) -> None:
    """Refuse a directory that holds something other than a bundle.

    Raises:
        UsageError: It does, or it is no directory.
    """
    if not directory.exists() and not directory.is_symlink():
        return
    if not directory.is_dir():
        raise UsageError(f"-o {directory}: is no directory; name a new one")
    if any(directory.iterdir()) and not (directory / BUNDLE).is_file():
        raise UsageError(f"-o {directory}: holds other files, which are left alone; name a new or empty directory")


def artifact_base(profile: Profile, bases: tuple[Path, ...]) -> Path | None:
    """Return the directory that the artifact paths are relative to, every digest checked; None where nothing is built.

    Raises:
        ProfileMismatch: A file is missing or has another content.
    """
    files = profile.best.artifacts
    if not files:
        return None
    problem = ""
    for base in bases:
        problems = [text for file in files if (text := file_problem(base, file, full=True))]
        if not problems:
            return base
        problem = problems[0]
    raise ProfileMismatch(f"artifact of the profile: {problem}; bundle where it was tuned, or tune again here")


def _fill(draft: Path, source: Path, profile: Profile, base: Path | None) -> Bundle:
    """Write everything into the draft, durable."""
    copies = [(source, PROFILE)]
    if base is not None:
        copies += [(base / file.path, file.path) for file in profile.best.artifacts]
    entries = []
    for place, name in copies:
        target = draft / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(place, target)
        entries.append(ArtifactFile(path=name, sha256=sha256_of(target), bytes=target.stat().st_size))
    bundle = Bundle(
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        tuner_version=profile.tuner_version,
        model_sha256=profile.model.sha256,
        files=tuple(entries),
    )
    (draft / BUNDLE).write_text(bundle.to_json(indent=1) + "\n", encoding="utf-8")
    (draft / SUMS).write_text("".join(f"{entry.sha256}  {entry.path}\n" for entry in entries), encoding="utf-8")
    draft.chmod(0o755)
    for path in [*draft.rglob("*"), draft]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return bundle


def _replace(draft: Path, directory: Path) -> None:
    """Put the draft in place: an empty directory or an earlier bundle makes way, and comes back if that fails."""
    aside = draft.with_name(f"{draft.name}.old")
    existed = directory.exists()
    if existed:
        directory.rename(aside)
    try:
        draft.rename(directory)
    except OSError:
        if existed:
            aside.rename(directory)
        raise
    shutil.rmtree(aside, ignore_errors=True)
