"""Says where a model is and of what kind, from the words the user typed; it reads no model and imports no engine."""

import re
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import NamedTuple

from tuner.errors import HostError, UsageError
from tuner.models.wording import one_line
from tuner.records.model import ModelKind

SUFFIXES: dict[str, ModelKind] = {".onnx": "onnx", ".xml": "openvino", ".gguf": "gguf"}
OTHER_FILES = {".bin", ".h5", ".json", ".msgpack", ".pb", ".pt", ".pth", ".py", ".safetensors", ".tflite", ".toml"}
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
HUB_FILES_PICKLED = [*HUB_FILES, "pytorch_model*.bin"]


class Located(NamedTuple):
    """A model on this machine: its kind and the absolute path of its directory or file (links not followed)."""

    kind: ModelKind
    path: Path


def locate(model: str, *, allow_network: bool = True) -> Located:
    """Find `model`: a directory, ``*.onnx``, ``*.xml``, ``*.gguf``, ``pkg:MODULE/SUBDIR`` or a hub id ``org/name``.

    A path that does not exist is an error, never a hub id; only a hub id may use the network.

    Raises:
        UsageError: Nothing is there, or it is of no known kind.
        HostError: The hub cannot be reached and its cache does not hold the model.
    """
    if model.startswith("py:"):
        raise UsageError(f"{model} runs code of its own: give --trust-code if you trust it (py: models come later)")
    if model.startswith("pkg:"):
        return _classify(locate_in_package(model), model)
    path = Path(model).expanduser()
    if path.exists():
        return _classify(path.absolute(), model)
    if is_path_like(model):
        what = "file" if path.suffix.lower() in SUFFIXES.keys() | OTHER_FILES else "directory"
        raise UsageError(f"{what} does not exist: {model}")
    return _classify(download(model, allow_network=allow_network), model)


def is_path_like(model: str) -> bool:
    """Say whether `model`, which does not exist, is meant as a path rather than a hub id."""
    suffix = Path(model).suffix.lower()
    if suffix in SUFFIXES or suffix in OTHER_FILES:
        return True
    return model.startswith((".", "/", "~")) or not HUB_ID.fullmatch(model)


def locate_in_package(model: str) -> Path:
    """Find ``pkg:MODULE/SUBDIR`` in the installed package, which is not imported; the current directory never counts.

    Raises:
        UsageError: No such package, or nothing of that name in it.
    """
    module, _, below = model.removeprefix("pkg:").partition("/")
    home = _package_directory(module)
    if home is None:
        raise UsageError(f"no installed package {module!r} for --model {model}: install it, or give a directory")
    path = home / below
    if ".." in Path(below).parts or not path.exists():
        raise UsageError(f"package {module} holds no {below!r}: it is installed in {home}")
    return path


def _package_directory(module: str) -> Path | None:
    """Return the directory of the dotted package `module` without running any of it."""
    here = Path.cwd()
    search = [entry for entry in sys.path if entry and Path(entry).absolute() != here]
    spec: ModuleSpec | None = None
    for depth, name in enumerate(module.split(".")):
        spec = PathFinder.find_spec(name, search) or (_editable_spec(name) if depth == 0 else None)
        if spec is None or not spec.submodule_search_locations:
            return None
        search = list(spec.submodule_search_locations)
    return Path(search[0])


def _editable_spec(name: str) -> ModuleSpec | None:
    """Ask the finders of editable installs; the standard ones are left out: they know the current directory."""
    for finder in sys.meta_path:
        if getattr(finder, "__module__", "").startswith("__editable__"):
            spec = finder.find_spec(name, None)
            if spec is not None:
                return spec
    return None


def download(hub_id: str, *, allow_network: bool) -> Path:
    """Return the local directory of a hub model: from the hub's cache, else over the network.

    Raises:
        HostError: It is not cached and cannot be fetched.
    """
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(hub_id, allow_patterns=HUB_FILES, local_files_only=True))
    except (OSError, ValueError):
        pass  # not cached
    if not allow_network:
        raise HostError(f"hub model {hub_id} is not in the local cache and the network is not allowed here")
    try:
        path = Path(snapshot_download(hub_id, allow_patterns=HUB_FILES))
        if not any(path.glob("*.safetensors")):
            path = Path(snapshot_download(hub_id, allow_patterns=HUB_FILES_PICKLED))
    except (OSError, ValueError, RuntimeError) as error:
        raise HostError(
            f"no directory {hub_id} here, and the hub gives no such model: {type(error).__name__}: {one_line(error)}"
        ) from None
    return path


def _classify(path: Path, model: str) -> Located:
    """Return the kind of what is at `path`."""
    if path.is_dir():
        return Located("huggingface", path)
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise UsageError(
            f"{model} is no model that is known here: give a Hugging Face directory, *.onnx, *.xml or *.gguf"
        )
    return Located(kind, path)
