"""What a build step is (group ``tuner.steps``); it holds no step and no discovery."""

from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from tuner.errors import Unsupported
from tuner.records import base

Settings = base.Settings

__all__ = ["Settings", "Step", "Unsupported"]


@runtime_checkable
class Step(Protocol):
    """A step that turns a source or other steps' outputs into files.

    A step may have a class attribute ``output`` (a model kind such as ``onnx``): where the source already is of that
    kind the step drops out of a chain. It may have ``installed()`` like a backend (with ``extra``, the extra of this
    package that brings what is missing), ``distributions`` (whose versions belong to the artifact's key), ``uses_data``
    (the prepared data do too), ``native`` (it writes machine code: the CPU's flags do too) and ``build_guess_s`` (the
    seconds it takes on two cores with any model, and those more for each GiB of weights; used until a build was seen).
    """

    name: ClassVar[str]
    Settings: ClassVar[type[base.Settings]]
    after: ClassVar[tuple[str, ...]]

    def space(self) -> Traversable:
        """Return the search-space TOML of the settings."""

    def build(self, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Build into `directory`, which exists and is empty.

        Args:
            inputs: Output directories of earlier steps by name; ``source`` is the model (directory or file) and
                ``prepared`` the prepared workload (see records.model.Prepared).
            settings: An instance of this class's Settings.
            directory: Where all files go; nothing else is written.

        Raises:
            Unsupported: This model or these settings cannot be built.
        """
