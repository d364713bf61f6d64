"""OpenVINO on CPUs; it opens an .xml or .onnx file or the directory of a build step and imports nothing heavier."""

import threading
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from pydantic import Field

from tuner.backends.base import Batch, Context, Settings
from tuner.errors import Unsupported, UsageError
from tuner.models.ports import port_name
from tuner.models.settling import settle
from tuner.models.wording import refusal
from tuner.plugins import installed_versions, space_file
from tuner.records.model import ModelFacts
from tuner.records.workload import Workload

__all__ = ["OpenVino", "OpenVinoSession", "OpenVinoSettings"]

PRECISIONS = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}


class OpenVinoSettings(Settings):
    """Properties set at compile time; None leaves the library's default (bfloat16 where the CPU has AMX).

    Attributes:
        inference_precision: ``INFERENCE_PRECISION_HINT``.
        threads: ``INFERENCE_NUM_THREADS``.
        performance_hint: ``PERFORMANCE_HINT``.
        num_streams: ``NUM_STREAMS``.
        enable_cpu_pinning: ``ENABLE_CPU_PINNING``.
        enable_hyper_threading: ``ENABLE_HYPER_THREADING``.
        scheduling_core_type: ``SCHEDULING_CORE_TYPE``.
        dynamic_quantization_group: ``DYNAMIC_QUANTIZATION_GROUP_SIZE``; 0: activations are not quantized.
        compiled_cache: ``CACHE_DIR`` in our cache: later loads read the compiled model.
    """

    inference_precision: Literal["float32", "bfloat16", "float16"] | None = None
    threads: int | None = Field(default=None, ge=1)
    performance_hint: Literal["latency", "throughput"] | None = None
    num_streams: int | None = Field(default=None, ge=1)
    enable_cpu_pinning: bool | None = None
    enable_hyper_threading: bool | None = None
    scheduling_core_type: Literal["any_core", "pcore_only", "ecore_only"] | None = None
    dynamic_quantization_group: int | None = Field(default=None, ge=0)
    compiled_cache: bool | None = None


class OpenVinoSession:
    """One compiled model and one infer request for every thread that calls it."""

    def __init__(self, file: Path, settings: OpenVinoSettings, cache_dir: str) -> None:
        import openvino

        try:
            self._compiled: Any = openvino.Core().compile_model(str(file), "CPU", _properties(settings, cache_dir))
        except RuntimeError as error:
            raise Unsupported(refusal("OpenVINO", openvino.__version__, file.name, error)) from error
        self._is_cached = bool(settings.compiled_cache)
        self._own = threading.local()
        self.input_names = tuple(port_name(port, index) for index, port in enumerate(self._compiled.inputs))
        self._names = [port_name(port, index) for index, port in enumerate(self._compiled.outputs)]

    def run(self, batch: Batch) -> Batch:
        """Run one batch; inputs are read where they lie, outputs are the caller's own copies."""
        try:
            request = self._own.request
        except AttributeError:
            request = self._own.request = self._compiled.create_infer_request()
        answer = request.infer(batch, share_inputs=True)
        return dict(zip(self._names, answer.values(), strict=True))

    def effective(self) -> dict[str, object]:
        """Return the properties of the compiled model."""
        read = self._compiled.get_property
        named = str(read("INFERENCE_PRECISION_HINT").get_type_name())
        named = {short: long for long, short in PRECISIONS.items()}.get(named, named)
        return {
            "inference_precision": named,
            "threads": int(read("INFERENCE_NUM_THREADS")),
            "performance_hint": str(read("PERFORMANCE_HINT")).rpartition(".")[2].lower(),
            "num_streams": int(read("NUM_STREAMS")),
            "enable_cpu_pinning": bool(read("ENABLE_CPU_PINNING")),
            "enable_hyper_threading": bool(read("ENABLE_HYPER_THREADING")),
            "scheduling_core_type": str(read("SCHEDULING_CORE_TYPE")).rpartition(".")[2].rstrip(">").lower(),
            "dynamic_quantization_group": int(read("DYNAMIC_QUANTIZATION_GROUP_SIZE")),
            "loaded_from_cache": bool(read("LOADED_FROM_CACHE")),
            "precision": named,
            "unverified": ["compiled_cache"] if self._is_cached else [],
        }

    def close(self) -> None:
        """Drop the requests and the compiled model."""
        self._own = threading.local()
        del self._compiled


class OpenVino:
    """Runs ONNX graphs and OpenVINO models."""

    name: ClassVar[str] = "openvino"
    SessionSettings: ClassVar[type[Settings]] = OpenVinoSettings

    def installed(self) -> dict[str, str] | None:
        """Return the version of openvino."""
        return installed_versions("openvino")

    def supports(self, model: ModelFacts, workload: Workload) -> str | None:  # noqa: ARG002 - part of the protocol
        """Take .xml and .onnx files, and through a build step Hugging Face directories and code."""
        is_known = model.kind in {"openvino", "onnx", "huggingface", "python"}
        return None if is_known else f"OpenVINO cannot open models of kind {model.kind}"

    def space(self) -> Traversable:
        """Return its search space."""
        return space_file("openvino.toml")

    def open(self, artifact: Path, settings: Settings, context: Context) -> OpenVinoSession:
        """Open ``model.xml`` or ``model.onnx`` in the artifact, or the file itself.

        Raises:
            Unsupported: There is no such file, or the library refuses it.
        """
        files = [artifact / "model.xml", artifact / "model.onnx"] if artifact.is_dir() else [artifact]
        file = next((file for file in files if file.suffix.lower() in {".xml", ".onnx"} and file.is_file()), None)
        if file is None:
            raise Unsupported(f"OpenVINO needs an .xml or .onnx file, not {artifact}: build step onnx_export makes one")
        if file.suffix.lower() == ".onnx":
            try:
                file = settle(file, Path(context.cache_dir) / "settled" / context.model.sha256[:16])
            except UsageError as error:
                raise Unsupported(str(error)) from error
        return OpenVinoSession(file, cast("OpenVinoSettings", settings), f"{context.cache_dir}/openvino")


def _properties(settings: OpenVinoSettings, cache_dir: str) -> dict[str, object]:
    """Return what to set at compile time; nothing is set that was not asked."""
    asked: dict[str, object | None] = {
        "INFERENCE_PRECISION_HINT": PRECISIONS[settings.inference_precision] if settings.inference_precision else None,
        "INFERENCE_NUM_THREADS": settings.threads,
        "PERFORMANCE_HINT": settings.performance_hint.upper() if settings.performance_hint else None,
        "NUM_STREAMS": settings.num_streams,
        "ENABLE_CPU_PINNING": settings.enable_cpu_pinning,
        "ENABLE_HYPER_THREADING": settings.enable_hyper_threading,
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": settings.dynamic_quantization_group,
        "CACHE_DIR": cache_dir if settings.compiled_cache else None,
        "SCHEDULING_CORE_TYPE": settings.scheduling_core_type.upper() if settings.scheduling_core_type else None,
    }
    return {name: value for name, value in asked.items() if value is not None}
