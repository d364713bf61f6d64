"""Opens a ``py:MODULE:FUNCTION`` model: imports the module, calls the function, and says which model came out.

Only workers and programs that load a profile do so, after the user has said that the code is trusted. The module's own
directory is importable from then on, after everything that is installed.
"""

import contextlib
import hashlib
import inspect
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from tuner.errors import UsageError
from tuner.models.digests import digest_file
from tuner.models.sources import function_of
from tuner.models.variants import is_convolutional
from tuner.models.wording import one_line
from tuner.records.base import digest_of
from tuner.records.model import ModelFacts, TensorSpec

if TYPE_CHECKING:
    import torch

PACKAGE = "__init__.py"


def call_function(source: str, path: Path) -> "tuple[torch.nn.Module, object]":
    """Call the function of a model where its module lies; return the module in eval mode and the example inputs.

    Raises:
        UsageError: The code fails, or returns something else.
    """
    import torch

    name, function = function_of(source)
    root = root_of(name, path)
    try:
        with contextlib.chdir(root), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # unseeded weights are the same in every process
            returned = getattr(_import(name, root), function)()
    except (Exception, SystemExit) as error:
        raise UsageError(f"{source}: {type(error).__name__}: {one_line(error)}") from error
    if not (isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[0], torch.nn.Module)):  # noqa: PLR2004
        raise UsageError(f"{source} returned {_phrase(returned)}: it must return an nn.Module and example inputs")
    return returned[0].eval(), returned[1]


def root_of(module: str, path: Path) -> Path:
    """Return the directory that the dotted `module` in file `path` is imported from."""
    return path.parents[module.count(".") + (path.name == PACKAGE)]


def _import(name: str, root: Path) -> ModuleType:
    """Import `name` from below `root`, whatever else has the name of its first part; libraries keep theirs."""
    first = name.partition(".")[0]
    if first not in sys.modules:
        spec = PathFinder.find_spec(first, [str(root)])
        if spec is None:
            raise ModuleNotFoundError(f"no module {first} in {root}")
        if str(root) not in sys.path:
            sys.path.append(str(root))
        module = module_from_spec(spec)
        sys.modules[first] = module
        if spec.loader is not None:
            try:
                spec.loader.exec_module(module)
            except BaseException:
                del sys.modules[first]
                raise
    if not _lies_in(sys.modules[first], root):
        raise UsageError(f"the name {first} is taken by {sys.modules[first]}: rename yours")
    return import_module(name)


def _lies_in(module: ModuleType, root: Path) -> bool:
    """Say whether a module of one name stands directly in `root`: as a file, a package or a bare directory."""
    places = [module.__file__] if getattr(module, "__file__", None) else list(getattr(module, "__path__", ()))
    return any(root in Path(str(place)).absolute().parents[:2] for place in places)


def identify(source: str, path: Path, inputs: Iterable[TensorSpec], weights: str) -> str:
    """Return the sha256 (hex) of a model: the sources that were imported from its place, its inputs and its weights."""
    module, function = function_of(source)
    root = root_of(module, path)
    sources = sorted([file.relative_to(root).as_posix(), digest_file(file)] for file in _files(module, root))
    return digest_of([function, sources, [one.digest() for one in inputs], weights])


def _files(name: str, root: Path) -> set[Path]:
    """Return the files of the model's own package and of every other module that was imported from `root` directly."""
    own = name.partition(".")[0]
    found = set()
    for key, module in sorted(sys.modules.items()):
        first = key.partition(".")[0]
        file = getattr(module, "__file__", None)
        is_beside = first not in {own, "tuner"} and first in sys.modules and _lies_in(sys.modules[first], root)
        if not (file and (first == own or is_beside)):
            continue
        if Path(file).absolute().is_relative_to(root) and Path(file).is_file():
            found.add(Path(file).absolute())
    return found


def weights_digest(model: "torch.nn.Module") -> str:
    """Return the sha256 (hex) over names, types, shapes and bytes of a module's weights and buffers."""
    import torch

    found = hashlib.sha256()
    for name, value in model.state_dict().items():
        if not isinstance(value, torch.Tensor):
            found.update(f"{name} {value!r}\n".encode())
            continue
        found.update(f"{name} {value.dtype} {list(value.shape)}\n".encode())
        found.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def describe(source: str, path: Path, task: str) -> ModelFacts:
    """Call a model's function once and describe what came out.

    Raises:
        UsageError: The code fails or returns something else.
    """
    model, examples = call_function(source, path)
    inputs = specs_of(named_examples(model, examples, source).tensors)
    weights = weights_digest(model)
    tensors = [*model.parameters(), *model.buffers()]
    return ModelFacts(
        source=source,
        kind="python",
        path=str(path),
        sha256=identify(source, path, inputs, weights),
        task=task,
        architecture=type(model).__name__,
        weight_bytes=sum(tensor.numel() * tensor.element_size() for tensor in tensors),
        n_parameters=sum(parameter.numel() for parameter in model.parameters()),
        weights_sha256=weights,
        is_convolutional=is_convolutional(model),
    )


class Examples(NamedTuple):
    """Example inputs by the names of forward's arguments.

    Attributes:
        tensors: What a call is fed with.
        constants: Other values, the same in every call.
        order: All names in order, where forward takes them by position; empty: by keyword.
    """

    tensors: "dict[str, torch.Tensor]"
    constants: dict[str, object]
    order: tuple[str, ...]


def named_examples(model: "torch.nn.Module", examples: object, source: str) -> Examples:
    """Name the example inputs: a tensor, a tuple or list of them in forward's order, or a dict by keyword.

    Raises:
        UsageError: There is no tensor among them, or something that is neither a tensor nor a plain value.
    """
    import numpy as np
    import torch

    order: tuple[str, ...] = ()
    if isinstance(examples, Mapping):
        given = {str(name): value for name, value in examples.items()}
    else:
        values = list(examples) if isinstance(examples, (tuple, list)) else [examples]
        order = _names(model, len(values))
        given = dict(zip(order, values, strict=True))
    tensors: dict[str, torch.Tensor] = {}
    constants: dict[str, object] = {}
    for name, value in given.items():
        if isinstance(value, (torch.Tensor, np.ndarray)):
            tensors[name] = torch.as_tensor(value).detach().cpu().contiguous()
        elif value is None or isinstance(value, (bool, int, float, str)):
            constants[name] = value
        else:
            raise UsageError(f"{source}: example input {name!r} is a {type(value).__name__}: give a tensor")
    if not tensors:
        raise UsageError(f"{source}: no tensor among the example inputs: return (module, a tensor, tuple or dict)")
    return Examples(tensors, constants, order)


def _names(model: "torch.nn.Module", n: int) -> tuple[str, ...]:
    """Return names of the first `n` arguments of forward; those of ``*args`` have a number."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    known = [one.name for one in inspect.signature(model.forward).parameters.values() if one.kind in kinds]
    return tuple(known[index] if index < len(known) else f"input_{index}" for index in range(n))


def specs_of(tensors: "Mapping[str, torch.Tensor]") -> tuple[TensorSpec, ...]:
    """Return what a model takes, every axis as the example has it."""
    return tuple(
        TensorSpec(name=name, dtype=str(tensor.dtype).removeprefix("torch."), shape=tuple(tensor.shape))
        for name, tensor in tensors.items()
    )


def _phrase(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(type(item).__name__ for item in value)})"
    return type(value).__name__
