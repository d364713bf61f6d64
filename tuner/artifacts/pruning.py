"""Lists and prunes the artifact store: longest unused first, never what a known profile needs; it builds nothing."""

import contextlib
import hashlib
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tuner.artifacts.store import FAILURE, MANIFEST, Manifest, Store, write_atomically
from tuner.errors import UsageError
from tuner.records.profile import Profile

LIMIT_BYTES = 20 * 2**30
LITTER_AGE_S = 24 * 3600.0


@dataclass(frozen=True)
class Entry:
    """One entry of the store.

    Attributes:
        what: ``prepared``, the names of the build steps, or ``failure`` (a build that is remembered not to work).
        last_used_s: Seconds since the epoch.
        is_needed: A known profile serves from it.
    """

    key: str
    what: str
    bytes: int
    last_used_s: float
    build_s: float
    is_needed: bool


def register_profile(store: Store, profile: Profile, path: Path) -> None:
    """Remember which entries the profile at `path` needs; a full disk is no error here."""
    keys = sorted({key for file in profile.best.artifacts if (key := key_of(file.path)) is not None})
    name = hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:32]
    directory = store.root / "profiles"
    with contextlib.suppress(OSError):
        directory.mkdir(mode=0o700, exist_ok=True)
        content = {"path": str(path.absolute()), "keys": keys}
        write_atomically(directory / f"{name}.json", json.dumps(content).encode())


def needed_keys(store: Store) -> set[str]:
    """Return the keys that profiles which still exist need; registrations of deleted profiles are forgotten."""
    keys: set[str] = set()
    for file in sorted((store.root / "profiles").glob("*.json")):
        try:
            content = json.loads(file.read_bytes())
            path, own = Path(content["path"]), {str(key) for key in content["keys"]}
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if path.exists():
            keys |= own
        else:
            with contextlib.suppress(OSError):
                file.unlink()
    return keys


def key_of(path: str) -> str | None:
    """Return the key in an artifact path relative to the cache: ``artifacts/ab/abcd…/model.onnx``."""
    parts = PurePosixPath(path).parts
    return parts[2] if len(parts) > 3 and parts[0] == "artifacts" else None  # noqa: PLR2004 - root, shard, key, file


def entries(store: Store) -> list[Entry]:
    """Return all whole entries and remembered failures, least recently used first."""
    needed = needed_keys(store)
    found: list[Entry] = []
    for directory in store.directory.glob("[0-9a-f][0-9a-f]/[0-9a-f]*"):
        for name in (MANIFEST, FAILURE):
            file = directory / name
            try:
                used_s, text = file.stat().st_mtime, file.read_bytes()
            except OSError:
                continue
            size = sum(one.stat().st_size for one in directory.rglob("*") if one.is_file())
            what, build_s = "failure", 0.0
            if name == MANIFEST:
                try:
                    manifest = Manifest.from_json(text)
                except UsageError:
                    continue
                what, build_s = title(manifest), manifest.build_s
            found.append(Entry(directory.name, what, size, used_s, build_s, directory.name in needed))
            break
    return sorted(found, key=lambda entry: entry.last_used_s)


def title(manifest: Manifest) -> str:
    """Return what an entry is, in few words."""
    chain = manifest.made_of.get("chain")
    if isinstance(chain, list) and chain:
        return " + ".join(str(step.get("step")) for step in chain if isinstance(step, dict))
    return str(manifest.made_of.get("what", "unknown"))


def prune(store: Store, limit_bytes: int = LIMIT_BYTES) -> list[Entry]:
    """Remove litter of dead builds, then entries by last use until the store fits; return what was removed.

    An entry that another tuner holds is left alone, and so is what a known profile needs, even above the limit.
    """
    remove_litter(store)
    present = entries(store)
    total = sum(entry.bytes for entry in present)
    removed: list[Entry] = []
    for entry in present:
        if total <= limit_bytes:
            break
        if entry.is_needed:
            continue
        with store.locked(entry.key):
            store.discard(entry.key)
        total -= entry.bytes
        removed.append(entry)
    return removed


def remove_litter(store: Store) -> int:
    """Remove temporary directories of builds whose process is gone, and what was put aside; return how many."""
    removed = 0
    for directory in [*store.directory.glob("*/.tmp-*"), *store.directory.glob("*/.gone-*")]:
        if is_abandoned(directory):
            shutil.rmtree(directory, ignore_errors=True)
            removed += 1
    return removed


def is_abandoned(directory: Path) -> bool:
    """Say whether the process that made a temporary directory is gone, or the directory is older than a day."""
    with contextlib.suppress(OSError):
        if time.time() - directory.stat().st_mtime > LITTER_AGE_S:
            return True
    if directory.name.startswith(".gone-"):
        return True
    with contextlib.suppress(ValueError, IndexError, PermissionError):
        try:
            os.kill(int(directory.name.split("-")[2]), 0)
        except ProcessLookupError:
            return True
    return False
