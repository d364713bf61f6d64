"""ONNX Runtime on CPUs; it opens an .onnx file or the directory of a build step and imports nothing heavier."""

from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from pydantic import Field

from tuner.backends.base import Batch, Context, Settings
from tuner.errors import Unsupported
from tuner.models.wording import refusal
from tuner.plugins import installed_versions, space_file
from tuner.records.model import ModelFacts
from tuner.records.workload import Workload

__all__ = ["OnnxRuntime", "OnnxRuntimeSession", "OnnxRuntimeSettings"]

LEVELS = {
    "disabled": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "layout": "ORT_ENABLE_LAYOUT",
    "all": "ORT_ENABLE_ALL",
}
MODES = {"sequential": "ORT_SEQUENTIAL", "parallel": "ORT_PARALLEL"}
SPINNING = ("session.intra_op.allow_spinning", "session.inter_op.allow_spinning")
CONFIG_ENTRIES = {
    "dynamic_block_base": "session.dynamic_block_base",
    "spin_duration_us": "session.intra_op.spin_duration_us",
    "denormal_as_zero": "session.set_denormal_as_zero",
    "disable_prepacking": "session.disable_prepacking",
    "gelu_approximation": "optimization.enable_gelu_approximation",
}
"""Settings that the library takes as texts; it keeps what it was told and does not say what it did."""
ERRORS_ONLY = 3


class OnnxRuntimeSettings(Settings):
    """Session options; None leaves the library's default.

    Attributes:
        intra_op_threads: Never 0 when asked: with 0 the library pins threads itself, outside the process's mask too.
        allow_spinning: Both pools: whether idle threads spin.
        dynamic_block_base: Work of a parallel step is cut into this many parts a thread, of falling size; 0: evenly.
        spin_duration_us: How long idle threads spin before they sleep.
        denormal_as_zero: Subnormal numbers count as zero.
        disable_prepacking: Weights stay as they are in the file: less memory, slower products.
        gelu_approximation: Gelu by its tanh formula.
    """

    intra_op_threads: int | None = Field(default=None, ge=1)
    inter_op_threads: int | None = Field(default=None, ge=1)
    execution_mode: Literal["sequential", "parallel"] | None = None
    allow_spinning: bool | None = None
    graph_optimization_level: Literal["disabled", "basic", "extended", "layout", "all"] | None = None
    cpu_mem_arena: bool | None = None
    mem_pattern: bool | None = None
    dynamic_block_base: int | None = Field(default=None, ge=0)
    spin_duration_us: int | None = Field(default=None, ge=0)
    denormal_as_zero: bool | None = None
    disable_prepacking: bool | None = None
    gelu_approximation: bool | None = None


class OnnxRuntimeSession:
    """One InferenceSession on the CPU provider."""

    def __init__(self, file: Path, settings: OnnxRuntimeSettings) -> None:
        import onnxruntime

        options = _session_options(onnxruntime, settings)
        try:
            self._session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise Unsupported(refusal("ONNX Runtime", onnxruntime.__version__, file.name, error)) from error
        self._modes = {getattr(onnxruntime.ExecutionMode, value): name for name, value in MODES.items()}
        self._levels = {getattr(onnxruntime.GraphOptimizationLevel, value): name for name, value in LEVELS.items()}
        self._names = [node.name for node in self._session.get_outputs()]
        self.input_names = tuple(node.name for node in self._session.get_inputs())
        self._run = self._session.run
        asked = settings.model_dump(exclude_none=True)
        self._told = [name for name in CONFIG_ENTRIES if name in asked]

    def run(self, batch: Batch) -> Batch:
        """Run one batch."""
        return dict(zip(self._names, self._run(self._names, batch), strict=True))

    def effective(self) -> dict[str, object]:
        """Return what the session's own options say; a pool of default size cannot be read back."""
        options = self._session.get_session_options()
        unverified = [] if options.intra_op_num_threads else ["intra_op_threads"]
        spinning = _config_entry(options, SPINNING[0])
        if spinning is None:
            unverified.append("allow_spinning")
        return {
            "intra_op_threads": options.intra_op_num_threads or None,
            "inter_op_threads": options.inter_op_num_threads or None,
            "execution_mode": self._modes[options.execution_mode],
            "graph_optimization_level": self._levels[options.graph_optimization_level],
            "cpu_mem_arena": options.enable_cpu_mem_arena,
            "mem_pattern": options.enable_mem_pattern,
            "allow_spinning": spinning,
            "threads": options.intra_op_num_threads or None,
            "precision": None,
            "unverified": unverified + self._told,
        }

    def close(self) -> None:
        """Drop the session."""
        del self._run, self._session


class OnnxRuntime:
    """Runs ONNX graphs."""

    name: ClassVar[str] = "onnxruntime"
    numerics: ClassVar[frozenset[str]] = frozenset(
        {"graph_optimization_level", "denormal_as_zero", "gelu_approximation"}
    )
    SessionSettings: ClassVar[type[Settings]] = OnnxRuntimeSettings

    def installed(self) -> dict[str, str] | None:
        """Return the version of onnxruntime."""
        return installed_versions("onnxruntime")

    def supports(self, model: ModelFacts, workload: Workload) -> str | None:  # noqa: ARG002 - part of the protocol
        """Take .onnx files, and through a build step Hugging Face directories and code."""
        is_known = model.kind in {"onnx", "huggingface", "python"}
        return None if is_known else f"ONNX Runtime cannot open models of kind {model.kind}"

    def space(self) -> Traversable:
        """Return its search space."""
        return space_file("onnxruntime.toml")

    def open(self, artifact: Path, settings: Settings, context: Context) -> OnnxRuntimeSession:  # noqa: ARG002
        """Open ``model.onnx`` in the artifact, or the file itself.

        Raises:
            Unsupported: There is no ONNX file, or the library refuses it.
        """
        file = artifact / "model.onnx" if artifact.is_dir() else artifact
        if file.suffix.lower() != ".onnx" or not file.is_file():
            raise Unsupported(f"ONNX Runtime needs an .onnx file, not {artifact}: build step onnx_export makes one")
        return OnnxRuntimeSession(file, cast("OnnxRuntimeSettings", settings))


def _session_options(onnxruntime: Any, settings: OnnxRuntimeSettings) -> Any:  # noqa: ANN401 - the library is untyped
    options = onnxruntime.SessionOptions()
    options.log_severity_level = ERRORS_ONLY
    if settings.intra_op_threads is not None:
        options.intra_op_num_threads = settings.intra_op_threads
    if settings.inter_op_threads is not None:
        options.inter_op_num_threads = settings.inter_op_threads
    if settings.execution_mode is not None:
        options.execution_mode = getattr(onnxruntime.ExecutionMode, MODES[settings.execution_mode])
    if settings.graph_optimization_level is not None:
        level = LEVELS[settings.graph_optimization_level]
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    if settings.cpu_mem_arena is not None:
        options.enable_cpu_mem_arena = settings.cpu_mem_arena
    if settings.mem_pattern is not None:
        options.enable_mem_pattern = settings.mem_pattern
    if settings.allow_spinning is not None:
        for key in SPINNING:
            options.add_session_config_entry(key, str(int(settings.allow_spinning)))
    for name, value in settings.model_dump(exclude_none=True, include=set(CONFIG_ENTRIES)).items():
        options.add_session_config_entry(CONFIG_ENTRIES[name], str(int(value)))
    return options


def _config_entry(options: Any, key: str) -> bool | None:  # noqa: ANN401 - the library is untyped
    """Return a boolean config entry, None where it was never set (the library then raises)."""
    try:
        return bool(options.get_session_config_entry(key) == "1")
    except RuntimeError:
        return None
