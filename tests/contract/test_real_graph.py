"""A real graph that comes as a package (magika's classifier of file contents), through preparing and every engine."""

from pathlib import Path

import pytest

from tuner.backends.base import Context
from tuner.messages import CheckFidelity
from tuner.models.inspect import inspect
from tuner.models.judging import judge
from tuner.plugins import plugin

MODEL = "pkg:magika/models/standard_v3_3/model.onnx"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, prepare_in):
    """The prepared workload: int32 features made from the graph's own dtypes and axes."""
    directory = tmp_path_factory.mktemp("prepared")
    return directory, prepare_in(inspect(MODEL), directory)[0]


def test_inputs_follow_the_graph(prepared):
    """One input of int32, as the graph declares it."""
    _, record = prepared
    assert [spec.dtype for spec in record.inputs] == ["int32"]


@pytest.mark.parametrize(
    ("backend", "settings"),
    [("onnxruntime", {"intra_op_threads": 1}), ("openvino", {"inference_precision": "float32"})],
)
def test_engines_agree_with_the_reference(prepared, tmp_path, backend, settings):
    """Float32 engines keep the contract's limit of 2% for a graph of any kind, with room."""
    directory, record = prepared
    engine = plugin("tuner.backends", backend)
    context = Context(model=record.model, workload=record.workload, cache_dir=str(tmp_path))
    source = engine.SessionSettings.from_json_object(settings, source=backend)
    session = engine.open(Path(record.model.path), source, context)
    done = judge(directory, record, session.run, CheckFidelity(max_samples=16))
    session.close()
    assert done.fidelity.rel_error_max < 0.001
    assert done.fidelity.n == 16


@pytest.mark.parametrize("step", ["ort_static_int8", "ort_dynamic_int8", "ort_matmul_nbits"])
def test_quantized_graph_keeps_the_limit(prepared, build, tmp_path, step):
    """Every int8 form of ONNX Runtime takes this graph, whose biases have one row, and stays within 2%."""
    directory, record = prepared
    made = build(step, {"source": Path(record.model.path), "prepared": directory})
    engine = plugin("tuner.backends", "onnxruntime")
    context = Context(model=record.model, workload=record.workload, cache_dir=str(tmp_path))
    session = engine.open(made, engine.SessionSettings(intra_op_threads=1), context)
    done = judge(directory, record, session.run, CheckFidelity(max_samples=16))
    session.close()
    assert 0 < done.fidelity.rel_error_max < 0.02
