"""What build steps that quantize ONNX graphs share: finding the graph, the prepared samples, the nodes to keep."""

import contextlib
import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tuner.errors import Unsupported
from tuner.models.judging import read_numbered

EXTERNAL_DATA_BYTES = 1 << 30
"""Weights above this lie beside the file: protobuf ends at 2 GiB, and the graph needs room too."""
SENSITIVITY = "sensitivity.json"
Batch = dict[str, np.ndarray]


def find_graph(inputs: Mapping[str, Path], what: str) -> Path:
    """Return the ONNX file of the export, or the source.

    Raises:
        Unsupported: There is none; `what` says who needs it.
    """
    place = inputs.get("onnx_export", inputs["source"])
    file = place / "model.onnx" if place.is_dir() else place
    if file.suffix.lower() != ".onnx" or not file.is_file():
        raise Unsupported(f"{what} needs an .onnx file, not {place}")
    return file


def read_samples(prepared: Path, most: int) -> list[Batch]:
    """Return up to `most` fidelity samples, which are the user's data where there are any.

    Raises:
        Unsupported: They hold numbers that are not finite.
    """
    samples = read_numbered(prepared / "samples.npz")[:most]
    for sample in samples:
        for name, array in sample.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise Unsupported(f"calibration data: input {name!r} holds NaN or infinity: clean the data")
    return samples


def with_shapes(source: Path, work: Path, *, is_large: bool) -> Path:
    """Return the graph with inferred shapes and basic fusions, or the source where inference cannot read it."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared = work / "prepared.onnx"
    options: dict[str, Any] = {"save_as_external_data": True, "all_tensors_to_one_file": True} if is_large else {}
    try:
        quant_pre_process(source, prepared, skip_symbolic_shape=True, **options)
    except Exception:  # noqa: BLE001 - shapes help, but quantizing works without them
        return source
    return prepared


def kept_float(inputs: Mapping[str, Path], n: int, graph: Path | None = None) -> list[str]:
    """Return the names of the `n` most sensitive nodes, which stay in float32.

    Args:
        inputs: Of the step; ``ort_sensitivity`` has ranked the nodes.
        n: How many.
        graph: The graph that is quantized, to see that the nodes are still there; None: not looked at.

    Raises:
        Unsupported: Nothing was ranked, or the nodes are gone.
    """
    if n == 0:
        return []
    if "ort_sensitivity" not in inputs:
        raise Unsupported("keep_float needs step ort_sensitivity before it in the chain")
    names = [entry["node"] for entry in json.loads((inputs["ort_sensitivity"] / SENSITIVITY).read_text())["nodes"]][:n]
    if graph is not None:
        import onnx

        present = {node.name for node in onnx.load(str(graph), load_external_data=False).graph.node}
        if not present.issuperset(names):
            raise Unsupported("the sensitive nodes are fused away before quantization: keep_float=0 is left")
    return names


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Keep the tools' advice, given on the root logger and standard output, out of the log."""
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(None):
            yield
    finally:
        logging.disable(logging.NOTSET)
