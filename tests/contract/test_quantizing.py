"""Steps that quantize ONNX graphs, on the tiny model: every setting runs and resembles the reference."""

import json

import numpy as np
import pytest

from tuner.backends.base import Context, Unsupported
from tuner.plugins import plugin


@pytest.fixture
def similarity(answered):
    """Return a function that opens an artifact and gives the least cosine with the reference over all samples."""

    def least(artifact):
        pairs = answered(artifact, intra_op_threads=1)
        return min(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in pairs)

    return least


def test_ranking_names_all_products_once(ranked):
    """Six products a layer, worst first, nothing else in the directory."""
    content = json.loads((ranked["ort_sensitivity"] / "sensitivity.json").read_text())
    errors = [entry["error_ratio"] for entry in content["nodes"]]
    assert len({entry["node"] for entry in content["nodes"]}) == 12
    assert errors == sorted(errors, reverse=True)
    assert 0 < errors[-1] <= errors[0] < 0.1
    assert [file.name for file in ranked["ort_sensitivity"].iterdir()] == ["sensitivity.json"]


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("ort_static_int8", {}),
        ("ort_static_int8", {"types": "S8S8", "per_channel": False}),
        ("ort_static_int8", {"types": "U8U8", "calibration": "percentile"}),
        ("ort_static_int8", {"calibration": "entropy", "reduce_range": True}),
        ("ort_matmul_nbits", {}),
        ("ort_matmul_nbits", {"bits": 4, "accuracy_level": 0}),
        ("ort_matmul_nbits", {"bits": 4, "is_symmetric": True, "block_size": 128}),
    ],
)
def test_every_scheme_resembles_the_reference(build, ranked, similarity, name, asked):
    """What comes out is one graph that ONNX Runtime runs."""
    artifact = build(name, ranked, **asked)
    assert [file.name for file in artifact.iterdir()] == ["model.onnx"]
    assert similarity(artifact) > 0.95


@pytest.mark.parametrize("name", ["ort_dynamic_int8", "ort_static_int8", "ort_matmul_nbits"])
def test_kept_products_stay_in_float(build, ranked, similarity, name):
    """With all products kept, outputs are those of the float graph; with none, they are not."""
    kept = build(name, ranked, keep_float=11)
    all_quantized = build(name, ranked)
    assert 1 - similarity(kept) < (1 - similarity(all_quantized)) / 2


def test_keeping_without_a_ranking_is_refused(build, tiny_bert, tiny_onnx):
    """A chain without the ranking cannot know what to keep."""
    inputs = {"source": tiny_bert.directory, "prepared": tiny_bert.prepared, "onnx_export": tiny_onnx}
    with pytest.raises(Unsupported, match="needs step ort_sensitivity before it"):
        build("ort_dynamic_int8", inputs, keep_float=1)


def test_nodes_that_are_gone_are_refused(build, ranked, tmp_path):
    """A ranking of other names never ends as a graph with nothing kept."""
    (tmp_path / "sensitivity.json").write_text('{"nodes": [{"node": "elsewhere", "error_ratio": 1.0}]}')
    with pytest.raises(Unsupported, match="fused away before quantization"):
        build("ort_static_int8", ranked | {"ort_sensitivity": tmp_path}, keep_float=1)


CALIBRATED = ["ort_static_int8", "nncf_int8"]


@pytest.fixture
def answer_of(tiny_bert, tmp_path):
    """Return a function that opens a graph with the engine of a step and gives ``y`` for rows of ``x``."""

    def run(artifact, name, rows):
        is_openvino = name == "nncf_int8"
        engine = plugin("tuner.backends", "openvino" if is_openvino else "onnxruntime")
        asked = {"inference_precision": "float32"} if is_openvino else {}
        context = Context(model=tiny_bert.facts, workload=tiny_bert.workload, cache_dir=str(tmp_path / "cache"))
        session = engine.open(artifact, engine.SessionSettings(**asked), context)
        answer = session.run({"x": rows})["y"]
        session.close()
        return answer

    return run


@pytest.fixture
def calibrate(build, linked_onnx, tmp_path):
    """Return a function that quantizes ``y = x`` by a step, calibrated on rows."""

    def run(name, rows):
        np.savez(tmp_path / "samples.npz", **{f"{index}.x": row[None] for index, row in enumerate(rows)})
        return build(name, {"source": linked_onnx, "prepared": tmp_path})

    return run


@pytest.mark.filterwarnings("ignore")  # NNCF's own
@pytest.mark.parametrize("name", CALIBRATED)
@pytest.mark.parametrize("rows", [np.zeros((1, 8)), np.full((4, 8), 3.0)], ids=["one of zeros", "four alike"])
def test_constant_rows_calibrate(calibrate, answer_of, name, rows):
    """One row, or rows that are all alike, give a graph that is right where it was calibrated."""
    rows = rows.astype(np.float32)
    np.testing.assert_allclose(answer_of(calibrate(name, rows), name, rows[:1]), rows[:1], atol=0.05)


@pytest.mark.parametrize("name", CALIBRATED)
@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_calibration_data_that_are_not_finite(calibrate, name, odd):
    """They are refused with the input's name, before they widen any range."""
    with pytest.raises(Unsupported, match="input 'x' holds NaN or infinity: clean the data"):
        calibrate(name, np.full((1, 8), odd, np.float32))


@pytest.mark.parametrize("shape", [(), (1,), (8,), (1, 8), (1, 1)])
def test_bias_of_any_shape_is_quantized(build, answer_of, tmp_path, shape):
    """A Gemm takes a bias that broadcasts; a fused Add leaves one of one row."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    bias = np.broadcast_to(np.linspace(1, 2, 8, dtype=np.float32)[: shape[-1] if shape else 1].reshape(shape), shape)
    weights = [
        numpy_helper.from_array(np.eye(8, dtype=np.float32), "w"),
        numpy_helper.from_array(np.ascontiguousarray(bias), "b"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 8]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Gemm", ["x", "w", "b"], ["y"])], "g", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "gemm.onnx")
    rows = np.random.default_rng(0).normal(size=(4, 1, 8)).astype(np.float32)
    np.savez(tmp_path / "samples.npz", **{f"{index}.x": row for index, row in enumerate(rows)})
    made = build("ort_static_int8", {"source": tmp_path / "gemm.onnx", "prepared": tmp_path})
    np.testing.assert_allclose(answer_of(made, "ort_static_int8", rows[0]), rows[0] + bias, atol=0.05)


@pytest.mark.parametrize("name", ["ort_matmul_nbits", "ort_sensitivity"])
def test_graph_without_products(build, tmp_path, name):
    """Packing that packs nothing is no scheme of its own; there is nothing to rank either."""
    import onnx
    from onnx import TensorProto, helper

    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 8]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "graph", value[:1], value[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "relu.onnx")
    np.savez(tmp_path / "samples.npz", **{"0.x": np.zeros((1, 8), np.float32)})
    inputs = {"source": tmp_path / "relu.onnx", "prepared": tmp_path}
    with pytest.raises(Unsupported, match="product with constant weights"):
        build(name, inputs)


def test_options_given_as_texts_are_listed(ranked, tiny_bert, tmp_path):
    """What ONNX Runtime takes without saying what it did is named as unverified."""
    engine = plugin("tuner.backends", "onnxruntime")
    context = Context(model=tiny_bert.facts, workload=tiny_bert.workload, cache_dir=str(tmp_path))
    asked = {"dynamic_block_base": 4, "denormal_as_zero": True, "disable_prepacking": True, "spin_duration_us": 100}
    session = engine.open(ranked["onnx_export"], engine.SessionSettings(intra_op_threads=1, **asked), context)
    assert set(asked) <= set(session.effective()["unverified"])
    assert set(session.run(tiny_bert.compared()[0][0])) == {"last_hidden_state"}
