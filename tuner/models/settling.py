"""Gives engines an ONNX file with its external data as plain files; some refuse a hub cache's symbolic links."""

import os
import shutil
from pathlib import Path

from tuner.models.graphs import summarize


def settle(file: Path, directory: Path) -> Path:
    """Return `file`, or a copy in `directory` if it has external data and a link lies beside it.

    Args:
        file: An ONNX file.
        directory: Where the copy goes, created when needed; a copy of the right sizes is used again.

    Raises:
        UsageError: Its external data are missing.
    """
    if not any(entry.is_symlink() for entry in file.parent.iterdir()):
        return file
    external = summarize(file).external
    if not external:
        return file
    pairs = {"model.onnx": file} | {location: file.parent / location for location in external}
    for name, path in pairs.items():
        target = directory / name
        if target.is_file() and target.stat().st_size == path.stat().st_size:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f"{target.name}.{os.getpid()}")
        shutil.copyfile(path.resolve(), temporary)
        temporary.replace(target)
    return directory / "model.onnx"
