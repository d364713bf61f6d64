"""Graphs that are old, tiny in value, huge in bytes or badly exported, through steps and engines."""

import types

import numpy as np
import pytest

from tuner.backends.base import Context, Unsupported
from tuner.measure.fidelity import Incorrect
from tuner.messages import CheckFidelity
from tuner.models.inspect import inspect
from tuner.models.judging import judge
from tuner.plugins import plugin
from tuner.records.model import Prepared

ROWS = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
HUGE_ROWS = 9 << 20
FLOATS = 64
pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own


@pytest.fixture
def write(tmp_path):
    """Return a function that writes ``y = x @ w * scale`` of an opset."""

    def make(weight, scale, *, opset=17):
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        nodes = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Mul", ["t", "s"], ["y"])]
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 8]) for name in "xy"]
        weights = [
            numpy_helper.from_array(np.asarray(a, np.float32), name) for name, a in (("w", weight), ("s", scale))
        ]
        graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        onnx.save(model, tmp_path / "model.onnx")
        np.savez(tmp_path / "samples.npz", **{f"{index}.x": row[None] for index, row in enumerate(ROWS)})
        return tmp_path / "model.onnx"

    return make


@pytest.fixture
def run(tiny_bert, tmp_path):
    """Return a function that opens a file with an engine and answers one batch."""

    def answer(file, backend, batch, **asked):
        engine = plugin("tuner.backends", backend)
        context = Context(model=tiny_bert.facts, workload=tiny_bert.workload, cache_dir=str(tmp_path / "cache"))
        session = engine.open(file, engine.SessionSettings(**asked), context)
        found = session.run(batch)
        session.close()
        return found["y"]

    return answer


@pytest.mark.parametrize("step", ["ort_dynamic_int8", "ort_static_int8", "ort_matmul_nbits"])
@pytest.mark.parametrize("opset", [7, 11])
def test_old_opset_is_quantized(write, build, run, step, opset):
    """A graph of an opset that the tools do not fuse or quantize is converted first."""
    file = write(np.eye(8), 1.0, opset=opset)
    made = build(step, {"source": file, "prepared": file.parent})
    np.testing.assert_allclose(run(made, "onnxruntime", {"x": ROWS}), ROWS, atol=0.1)


@pytest.mark.parametrize(
    ("backend", "asked"), [("onnxruntime", {"intra_op_threads": 1}), ("openvino", {"inference_precision": "float32"})]
)
def test_subnormal_weights_are_not_flushed(write, run, backend, asked):
    """Weights of 1e-40 count, by default, in every float32 engine."""
    file = write(np.eye(8) * 1e-40, 1e38)
    np.testing.assert_allclose(run(file, backend, {"x": ROWS}, **asked), ROWS * 0.01, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.0, "misses"), (1.0, "misses"), (np.nan, "refused"), (np.inf, "refused")]
)
def test_constant_and_nonfinite_outputs_never_pass(tiny_bert, value, verdict):
    """What quantizing may leave of a model: the same figure everywhere misses the limit, NaN is refused."""
    record = Prepared.from_json((tiny_bert.prepared / "prepared.json").read_bytes())

    def broken(batch):
        return {"last_hidden_state": np.full((*batch["input_ids"].shape, 32), value, np.float32)}

    command = CheckFidelity(max_samples=16)
    if verdict == "misses":
        assert judge(tiny_bert.prepared, record, broken, command).fidelity.cosine_min < 0.9
        return
    with pytest.raises(Incorrect, match="finite"):
        judge(tiny_bert.prepared, record, broken, command)


@pytest.fixture
def export(tiny_bert, tmp_path):
    """Return a function that exports the tiny model."""

    def make(exporter):
        step = plugin("tuner.steps", "onnx_export")
        inputs = {"source": tiny_bert.directory, "prepared": tiny_bert.prepared}
        step.build(inputs, step.Settings(exporter=exporter), tmp_path)

    return make


def test_graph_that_is_valid_and_wrong_is_refused(export, monkeypatch):
    """ONNX's checker passes it, the comparison with PyTorch on other shapes does not."""
    import onnx
    import torch
    from onnx import numpy_helper

    genuine = torch.onnx.export

    def spoiled(graph, args, file, **options):
        genuine(graph, args, file, **options)
        model = onnx.load(file)
        weight = max(model.graph.initializer, key=lambda item: len(item.raw_data))
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * 1.5, weight.name))
        onnx.checker.check_model(model)
        onnx.save(model, file)

    monkeypatch.setattr(torch.onnx, "export", spoiled)
    with pytest.raises(Unsupported, match="differs from PyTorch by"):
        export("torchscript")


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_operator_that_no_exporter_knows(export, monkeypatch, exporter):
    """The operator is named, in one line."""
    import torch
    from transformers.activations import GELUActivation

    strange = _strange_operator()
    monkeypatch.setattr(GELUActivation, "forward", lambda _, values: strange(values))
    with pytest.raises(Unsupported, match=r"strange") as caught:
        export(exporter)
    assert (str(caught.value).count("\n"), exporter in str(caught.value)) == (0, True)
    assert torch.equal(strange(torch.ones(2)), torch.ones(2))


def _strange_operator():
    """Return an operator of nobody's, registered once."""
    import torch

    if not hasattr(torch.ops.autotune_test, "strange"):

        @torch.library.custom_op("autotune_test::strange", mutates_args=())
        def strange(values: torch.Tensor) -> torch.Tensor:
            return values.clone()

        strange.register_fake(torch.empty_like)
    return torch.ops.autotune_test.strange


@pytest.fixture
def huge(tmp_path):
    """Write a table of 2.25 GiB, sparse but for its last row, and a product; the data lie beside the graph."""
    import onnx
    from onnx import TensorProto, helper

    table = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[HUGE_ROWS, FLOATS], data_location=1)
    n_bytes = 4 * HUGE_ROWS * FLOATS
    for key, value in (("location", "huge.data"), ("offset", "0"), ("length", str(n_bytes))):
        table.external_data.add(key=key, value=value)
    last = np.arange(FLOATS, dtype=np.float32)
    with (tmp_path / "huge.data").open("wb") as file:
        file.truncate(n_bytes)
        file.seek(n_bytes - last.nbytes)
        file.write(last.tobytes())
    product = onnx.numpy_helper.from_array(np.eye(FLOATS, dtype=np.float32), "p")
    nodes = [helper.make_node("Gather", ["w", "ids"], ["t"]), helper.make_node("MatMul", ["t", "p"], ["y"])]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [None])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, FLOATS])
    graph = helper.make_graph(nodes, "graph", [ids], [y], [table, product])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    np.savez(tmp_path / "samples.npz", **{"0.ids": np.array([HUGE_ROWS - 1])})
    return types.SimpleNamespace(
        file=tmp_path / "model.onnx", last=last, ids=np.array([HUGE_ROWS - 1, 0]), n_bytes=n_bytes
    )


@pytest.mark.slow
def test_more_than_two_gigabytes(huge, run):
    """A graph whose data exceed what protobuf holds is described, and opened by both engines."""
    facts = inspect(str(huge.file))
    assert (facts.weight_bytes > 2 << 30, facts.n_parameters) == (True, HUGE_ROWS * FLOATS + FLOATS**2)
    expected = np.stack([huge.last, np.zeros(FLOATS, np.float32)])
    for backend in ("onnxruntime", "openvino"):
        np.testing.assert_allclose(run(huge.file, backend, {"ids": huge.ids}), expected, rtol=0.01)
