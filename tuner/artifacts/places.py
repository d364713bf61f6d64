"""Where the cache directory is; it makes none."""

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tuner.errors import HostError, UsageError


def cache_directory(option: str | None, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the cache directory: the option, else $XDG_CACHE_HOME/autotune, else ~/.cache/autotune.

    A user without a usable home (a random UID in a container) gets a directory of its own below the temporary one. A
    relative $XDG_CACHE_HOME is ignored, as its specification asks.

    Raises:
        UsageError: The option is empty.
    """
    if option is not None:
        if not option:
            raise UsageError("--cache-dir is empty: name a directory or leave it out")
        return Path(option).expanduser().absolute()
    base = Path(environ.get("XDG_CACHE_HOME") or ".")
    if base.is_absolute():
        return base / "autotune"
    home = Path(environ.get("HOME") or "/nonexistent")
    if home.is_dir() and os.access(home, os.W_OK) and home != Path("/"):
        return home / ".cache" / "autotune"
    return shared_fallback()


def shared_fallback() -> Path:
    """Return the cache of a user without a home; anyone may have made it before us."""
    return Path(tempfile.gettempdir()) / f"autotune-{os.getuid()}"


def refuse_foreign(directory: Path) -> None:
    """Refuse the fallback that lies where anyone may write, unless only this user can have put something into it.

    Raises:
        HostError: It is a link, another user's, or others may write into it.
    """
    if directory != shared_fallback():
        return
    state = directory.lstat()
    if stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid() and not state.st_mode & 0o022:
        return
    raise HostError(
        f"the cache directory {directory} is not this user's alone (a link, another owner, or others may write there): "
        "remove it, or name another with --cache-dir"
    )
