"""Says where a model is and of what kind, from the words the user typed; it reads no model and imports no engine."""

import re
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import NamedTuple

from tuner.errors import HostError, UsageError
from tuner.models.wording import one_line
from tuner.records.model import ModelKind

CODE = "py:"
"""How a model begins that runs code."""
SUFFIXES: dict[str, ModelKind] = {".onnx": "onnx", ".xml": "openvino", ".gguf": "gguf"}
OTHER_FILES = {".bin", ".h5", ".json", ".msgpack", ".pb", ".pt", ".pth", ".py", ".safetensors", ".tflite", ".toml"}
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
HUB_PAGE = re.compile(r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/([^/?#]+/[^/?#]+)")
HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
HUB_FILES_PICKLED = [*HUB_FILES, "pytorch_model*.bin"]


class Located(NamedTuple):
    """A model on this machine: its kind and the absolute path of its directory or file (links not followed)."""

    kind: ModelKind
    path: Path


def locate(model: str, *, allow_network: bool = True, trust_code: bool = False) -> Located:
    """Find `model`: a directory, ``*.onnx``, ``*.xml``, ``*.gguf``, ``pkg:…``, ``py:MODULE:FUNCTION`` or a hub id.

    A path that does not exist is an error, never a hub id; only a hub id may use the network. No code of a ``py:``
    model runs here: its path is its module's file.

    Raises:
        UsageError: Nothing is there, it is of no known kind, or it would run code that is not trusted.
        HostError: The hub cannot be reached and its cache does not hold the model.
    """
    if not model.strip():
        raise UsageError("the model's name is empty: give a directory, a file or a hub id")
    page = HUB_PAGE.match(model)
    if page:
        raise UsageError(f"{model} is a page of the hub: give the model's hub id, {page[1]}")
    if model.startswith(CODE):
        require_trust(model, trust_code=trust_code)
        return Located("python", locate_function(model))
    if model.startswith("pkg:"):
        return _classify(locate_in_package(model), model)
    path = Path(model).expanduser()
    if path.exists():
        return _classify(path.absolute(), model)
    if is_path_like(model):
        what = "file" if path.suffix.lower() in SUFFIXES.keys() | OTHER_FILES else "directory"
        raise UsageError(f"{what} does not exist: {model}")
    return _classify(download(model, allow_network=allow_network), model)


def require_trust(model: str, *, trust_code: bool) -> None:
    """Refuse a model that runs code of its own unless the one who runs this trusts it.

    Raises:
        UsageError: It is not trusted.
    """
    if model.startswith(CODE) and not trust_code:
        raise UsageError(f"{model} runs code of its own: give --trust-code (load: trust_code=True) if you trust it")


def function_of(model: str) -> tuple[str, str]:
    """Return module and function of ``py:MODULE:FUNCTION``.

    Raises:
        UsageError: It is not written so.
    """
    module, _, function = model.removeprefix(CODE).partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), function)):
        raise UsageError(f"{model}: write py:MODULE:FUNCTION; it returns an nn.Module and example inputs")
    return module, function


def locate_function(model: str) -> Path:
    """Find the source file of ``py:MODULE:FUNCTION`` without running any of it: here first, then what is installed.

    Raises:
        UsageError: No such module.
    """
    module, _ = function_of(model)
    here = Path.cwd()
    for search in ([str(here)], [entry for entry in sys.path if entry]):
        spec = _find_module(module, search)
        if spec is not None and spec.origin and spec.origin.endswith(".py"):
            return Path(spec.origin).absolute()
    raise UsageError(f"no module {module!r} in {here} or installed for --model {model}: start where it is")


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
    spec = _find_module(module, [entry for entry in sys.path if entry and Path(entry).absolute() != here])
    return Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None


def _find_module(module: str, search: Sequence[str]) -> ModuleSpec | None:
    """Return where the dotted `module` is, below one of the directories or an editable install; runs none of it."""
    first, *rest = module.split(".")
    spec = PathFinder.find_spec(first, search) or _editable_spec(first)
    for name in rest:
        if spec is None or not spec.submodule_search_locations:
            return None
        spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    return spec


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
    if not path.is_file():
        raise UsageError(
            f"{model} is neither a file nor a directory: a model is read more than once, save it to a file"
        )
    return Located(kind, path)
