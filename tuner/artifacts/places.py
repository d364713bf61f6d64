"""Where the cache directory is; it makes none."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def cache_directory(option: str | None, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the cache directory: the option, else $XDG_CACHE_HOME/autotune, else ~/.cache/autotune.

    A user without a usable home (a random UID in a container) gets a directory of its own below the temporary one.
    """
    if option:
        return Path(option).expanduser().absolute()
    base = environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base).absolute() / "autotune"
    home = Path(environ.get("HOME") or "/nonexistent")
    if home.is_dir() and os.access(home, os.W_OK) and home != Path("/"):
        return home / ".cache" / "autotune"
    return Path(tempfile.gettempdir()) / f"autotune-{os.getuid()}"
