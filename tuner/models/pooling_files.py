"""Says how a model pools its token vectors, as sentence-transformers files write it; the computing is in `pooling`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from tuner.errors import UsageError
from tuner.records.model import Pooling

Mode = Literal["mean", "cls", "max", "last"]

MODES: dict[str, Mode] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean",
    "pooling_mode_lasttoken": "last",
}
NAMES: dict[str, Mode] = {
    "cls": "cls",
    "mean": "mean",
    "max": "max",
    "lasttoken": "last",
    "mean_sqrt_len_tokens": "mean",
}


def pooling_of(directory: Path) -> Pooling:
    """Return the pooling that ``modules.json`` and the Pooling module describe, else masked mean and normalisation.

    Raises:
        UsageError: They describe a pooling that is not known here.
    """
    modules = _read(directory / "modules.json")
    if not isinstance(modules, list):
        return Pooling()
    types = {str(module.get("type", "")).rpartition(".")[2]: str(module.get("path", "")) for module in modules}
    if "Pooling" not in types:
        return Pooling(normalize="Normalize" in types, source="modules.json")
    file = directory / types["Pooling"] / "config.json"
    content = _read(file)
    if not isinstance(content, dict):
        raise UsageError(f"{file} is missing or not JSON: download the model again")
    source = str(file.relative_to(directory))
    dense = " (its Dense module is left out)" if "Dense" in types else ""
    return Pooling(mode=_mode(content, file), normalize="Normalize" in types, source=source + dense)


def _mode(content: Mapping[str, object], file: Path) -> Mode:
    named = content.get("pooling_mode")
    chosen = [mode for key, mode in MODES.items() if content.get(key) is True]
    if isinstance(named, str) and named in NAMES:
        return NAMES[named]
    if len(chosen) != 1:
        raise UsageError(f"{file} asks for a pooling that is not known here: known are one of {', '.join(MODES)}")
    return chosen[0]


def _read(file: Path) -> object:
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None
