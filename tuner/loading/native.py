"""Says whether artifact files hold native code, and whether they lie where only this user can have put them.

Opening such a file runs whatever is in it (AOTInductor packages, inductor's cache, pickles), so its digest in a
profile of a stranger proves nothing.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from tuner.records.profile import ArtifactFile

_SUFFIXES = frozenset({
    ".so", ".o", ".a", ".dylib", ".dll", ".pyd", ".pt2", ".pt", ".pth", ".pkl", ".pickle", ".py", ".pyc", ".cpp", ".c",
})  # fmt: skip
_MAGIC = (
    b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"!<arch>",
    b"\x80\x04\x95", b"\x80\x05\x95",
)  # fmt: skip


def native_code(base: Path, files: Iterable[ArtifactFile], own: Path | None) -> str | None:
    """Return what stands against opening `files` below `base`, None if nothing does."""
    native = next((file.path for file in files if is_native(base / file.path)), None)
    if native is None or (own is not None and base.resolve() == own.resolve() and is_our_own(own, native)):
        return None
    return (
        f"{base / native} holds native code, which is opened only from our own cache directory (owner only); "
        "--trust-profile (load: trust_profile=True) opens it if you know who made it"
    )


def is_native(path: Path) -> bool:
    """Say whether a file would run as code when it is opened, by its name or its first bytes."""
    if _SUFFIXES & {suffix.lower() for suffix in path.suffixes}:
        return True
    try:
        with path.open("rb") as file:
            return file.read(8).startswith(_MAGIC)
    except OSError:
        return True


def is_our_own(cache: Path, name: str) -> bool:
    """Say whether only this user can have put `name` into the cache: nobody else writes there or enters the folder."""
    uid = os.getuid() if hasattr(os, "getuid") else None
    writing = stat.S_IWGRP | stat.S_IWOTH
    for place, forbidden in ((cache, writing), (cache / Path(name).parts[0], stat.S_IRWXG | stat.S_IRWXO)):
        try:
            state = place.stat()
        except OSError:
            return False
        if (uid is not None and state.st_uid != uid) or stat.S_IMODE(state.st_mode) & forbidden:
            return False
    return True
