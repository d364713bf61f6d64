"""The backend: opens a Hugging Face directory or a ``py:`` model as a live module, or a package of a build step."""

from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar, cast

from tuner.backends.base import Context, Session, Settings
from tuner.backends.pytorch.settings import PyTorchSettings
from tuner.errors import Unsupported
from tuner.plugins import installed_versions, space_file
from tuner.records.base import Scalar
from tuner.records.model import ModelFacts
from tuner.records.workload import Workload


class PyTorch:
    """Runs Hugging Face models as every user of transformers does, or compiled."""

    name: ClassVar[str] = "pytorch"
    SessionSettings: ClassVar[type[Settings]] = PyTorchSettings

    def installed(self) -> dict[str, str] | None:
        """Return versions of torch and transformers."""
        return installed_versions("torch", "transformers")

    def supports(self, model: ModelFacts, workload: Workload) -> str | None:  # noqa: ARG002 - part of the protocol
        """Take Hugging Face directories and code."""
        if model.kind in {"huggingface", "python"}:
            return None
        return f"PyTorch (eager, compiled or AOTInductor) cannot open models of kind {model.kind}"

    def space(self) -> Traversable:
        """Return its search space."""
        return space_file("pytorch.toml")

    @staticmethod
    def compiled(session: Mapping[str, Scalar]) -> bool:
        """Say whether a session with these settings compiles in its first calls."""
        return session.get("compile") not in (None, "off")

    def open(self, artifact: Path, settings: Settings, context: Context) -> Session:
        """Open the model's source, or the package of step ``aot_inductor``.

        Raises:
            Unsupported: The artifact is neither, or the library cannot open it so.
        """
        chosen = cast("PyTorchSettings", settings)
        if artifact == Path(context.model.path):
            from tuner.backends.pytorch.live import LiveSession

            return LiveSession(context, chosen)
        if not (artifact / "package.json").is_file():
            raise Unsupported(
                f"PyTorch opens the model's source or a compiled package, not the artifact {artifact.name}"
            )
        from tuner.backends.pytorch.packaged import PackagedSession

        return PackagedSession(artifact, context, chosen)
