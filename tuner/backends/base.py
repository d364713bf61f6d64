"""What a backend is (group ``tuner.backends``); it holds no backend and no discovery."""

from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from tuner.errors import Unsupported
from tuner.records.base import Record, Settings
from tuner.records.model import ModelFacts
from tuner.records.workload import Workload

__all__ = ["Backend", "Batch", "Context", "GeneratingSession", "Session", "Settings", "Unsupported"]

Batch = dict[str, np.ndarray]


class Context(Record):
    """What a session may know besides its artifact: the model, the traffic, a directory for the engine's caches."""

    model: ModelFacts
    workload: Workload
    cache_dir: str


@runtime_checkable
class Session(Protocol):
    """A loaded model."""

    def run(self, batch: Batch) -> Batch:
        """Run one batch; the timed call, arrays in host memory to arrays in host memory, nothing else inside."""

    def effective(self) -> dict[str, object]:
        """Return what the runtime says is in force: SessionSettings keys where readable, and `threads`, `precision`."""

    def close(self) -> None:
        """Give back what the engine holds."""


@runtime_checkable
class GeneratingSession(Session, Protocol):
    """A session that can generate text."""

    def generate(self, prompt_ids: np.ndarray, new_tokens: int) -> Iterator[int]:
        """Yield up to `new_tokens` token ids after `prompt_ids` (int64, one row)."""


@runtime_checkable
class Backend(Protocol):
    """An engine; the entry point names the class, called without arguments."""

    name: ClassVar[str]
    SessionSettings: ClassVar[type[Settings]]

    def installed(self) -> dict[str, str] | None:
        """Return distribution versions from metadata only, without an import; None when absent."""

    def supports(self, model: ModelFacts, workload: Workload) -> str | None:
        """Return the reason why not, or None; starts no process."""

    def space(self) -> Traversable:
        """Return the search-space TOML."""

    def open(self, artifact: Path, settings: Settings, context: Context) -> Session:
        """Open in a worker; `artifact` is the last step's directory, or the model's source if nothing is built.

        Raises:
            Unsupported: The engine cannot do this.
        """
