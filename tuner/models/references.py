"""Opens a model in forced float32, the reference of fidelity; only the worker that prepares does so."""

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tuner.errors import HostError, UsageError
from tuner.models.ports import port_name
from tuner.models.variants import answer_of
from tuner.models.wording import refusal
from tuner.records.model import ModelFacts, TensorSpec

Batch = dict[str, np.ndarray]


class Reference(NamedTuple):
    """An open reference: what it takes and answers, the call, its name in ``prepared.json``, inputs that it brings."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[str, ...]
    run: Callable[[Batch], Batch]
    name: str
    examples: Batch | None = None


ORT_DTYPES = {"float": "float32", "double": "float64", "float16": "float16", "bool": "bool", "string": "str"}


def open_reference(facts: ModelFacts) -> Reference:
    """Open `facts` with the plainest engine of its kind.

    Raises:
        UsageError: The engine refuses the file.
        Unsupported: transformers cannot open the model.
    """
    openers = {"huggingface": _open_pytorch, "python": _open_pytorch, "onnx": _open_onnx, "openvino": _open_openvino}
    if facts.kind not in openers:
        raise UsageError(f"{facts.source}: models of kind {facts.kind} cannot be prepared yet")
    return openers[facts.kind](facts)


def _open_pytorch(facts: ModelFacts) -> Reference:
    from tuner.models.live import OUTPUTS, open_live

    live = open_live(facts, "float32")

    def run(batch: Batch) -> Batch:
        return answer_of(live.module, batch)

    outputs = OUTPUTS.get(facts.task, ()) if facts.kind == "huggingface" else ()
    return Reference(live.inputs, outputs, run, "pytorch eager float32", live.examples)


def _open_onnx(facts: ModelFacts) -> Reference:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    try:
        session = onnxruntime.InferenceSession(facts.path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - its exceptions have no public base
        raise UsageError(refusal("ONNX Runtime", onnxruntime.__version__, facts.source, error)) from None
    specs = tuple(
        TensorSpec(name=node.name, dtype=_ort_dtype(node.type), shape=_free_axes(node.shape))
        for node in session.get_inputs()
    )
    outputs = tuple(node.name for node in session.get_outputs())

    def run(batch: Batch) -> Batch:
        return dict(zip(outputs, session.run(outputs, batch), strict=True))

    return Reference(specs, outputs, run, "onnxruntime defaults")


def _open_openvino(facts: ModelFacts) -> Reference:
    try:
        import openvino
    except ImportError:
        raise HostError("OpenVINO is not installed: pip install 'autotune-cpu[openvino]'") from None
    core = openvino.Core()
    try:
        compiled: Any = core.compile_model(facts.path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    except RuntimeError as error:
        raise UsageError(refusal("OpenVINO", openvino.__version__, facts.source, error)) from None
    specs = tuple(
        TensorSpec(
            name=port_name(port, index),
            dtype=np.dtype(port.get_element_type().to_dtype()).name,
            shape=tuple(axis.get_length() if axis.is_static else None for axis in port.get_partial_shape()),
        )
        for index, port in enumerate(compiled.inputs)
    )
    outputs = tuple(port_name(port, index) for index, port in enumerate(compiled.outputs))

    def run(batch: Batch) -> Batch:
        answer = compiled(batch)
        return {name: np.array(answer[i]) for i, name in enumerate(outputs)}

    return Reference(specs, outputs, run, "openvino f32")


def _ort_dtype(text: str) -> str:
    """Turn ``tensor(int64)`` into ``int64``; sequences and maps are ``unknown``."""
    inner = text.removeprefix("tensor(").removesuffix(")")
    return ORT_DTYPES.get(inner, inner) if text.startswith("tensor(") else "unknown"


def _free_axes(shape: Sequence[object]) -> tuple[int | None, ...]:
    return tuple(axis if isinstance(axis, int) and axis >= 0 else None for axis in shape)
