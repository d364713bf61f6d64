"""Steps that quantize ONNX graphs, on the tiny model: every setting runs and resembles the reference."""

import json

import numpy as np
import pytest

from tuner.backends.base import Context, Unsupported
from tuner.plugins import plugin


@pytest.fixture(scope="module")
def inputs(tiny_bert, tiny_onnx, tmp_path_factory):
    """Return the inputs of a quantizing step: export, prepared samples and ranking."""
    found = {"source": tiny_bert.directory, "prepared": tiny_bert.prepared, "onnx_export": tiny_onnx}
    directory = tmp_path_factory.mktemp("ranking")
    step = plugin("tuner.steps", "ort_sensitivity")
    step.build(found, step.Settings(), directory)
    return found | {"ort_sensitivity": directory}


@pytest.fixture
def similarity(tiny_bert, tmp_path):
    """Return a function that opens an artifact and gives the least cosine with the reference over all samples."""

    def least(artifact, backend="onnxruntime", **settings):
        engine = plugin("tuner.backends", backend)
        context = Context(model=tiny_bert.facts, workload=tiny_bert.workload, cache_dir=str(tmp_path / "cache"))
        session = engine.open(artifact, engine.SessionSettings(**settings), context)
        pairs = [
            tuple(found["last_hidden_state"].ravel().astype(np.float64) for found in (session.run(sample), reference))
            for sample, reference in tiny_bert.compared()
        ]
        session.close()
        return min(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in pairs)

    return least


def build(name, inputs, directory, **asked):
    """Run a step into a new directory and return it."""
    directory.mkdir()
    step = plugin("tuner.steps", name)
    step.build(inputs, step.Settings(**asked), directory)
    return directory


def test_ranking_names_all_products_once(inputs):
    """Six products a layer, worst first, nothing else in the directory."""
    content = json.loads((inputs["ort_sensitivity"] / "sensitivity.json").read_text())
    errors = [entry["error_ratio"] for entry in content["nodes"]]
    assert len({entry["node"] for entry in content["nodes"]}) == 12
    assert errors == sorted(errors, reverse=True)
    assert 0 < errors[-1] <= errors[0] < 0.1
    assert [file.name for file in inputs["ort_sensitivity"].iterdir()] == ["sensitivity.json"]


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
def test_every_scheme_resembles_the_reference(inputs, tmp_path, similarity, name, asked):
    """What comes out is one graph that ONNX Runtime runs."""
    artifact = build(name, inputs, tmp_path / "made", **asked)
    assert [file.name for file in artifact.iterdir()] == ["model.onnx"]
    assert similarity(artifact, intra_op_threads=1) > 0.95


@pytest.mark.parametrize("name", ["ort_dynamic_int8", "ort_static_int8", "ort_matmul_nbits"])
def test_kept_products_stay_in_float(inputs, tmp_path, similarity, name):
    """With all products kept, outputs are those of the float graph; with none, they are not."""
    kept = build(name, inputs, tmp_path / "kept", keep_float=11)
    all_quantized = build(name, inputs, tmp_path / "none")
    assert 1 - similarity(kept, intra_op_threads=1) < (1 - similarity(all_quantized, intra_op_threads=1)) / 2


def test_keeping_without_a_ranking_is_refused(tiny_bert, tiny_onnx, tmp_path):
    """A chain without the ranking cannot know what to keep."""
    inputs = {"source": tiny_bert.directory, "prepared": tiny_bert.prepared, "onnx_export": tiny_onnx}
    with pytest.raises(Unsupported, match="needs step ort_sensitivity before it"):
        build("ort_dynamic_int8", inputs, tmp_path / "made", keep_float=1)


def test_nodes_that_are_gone_are_refused(inputs, tmp_path):
    """A ranking of other names never ends as a graph with nothing kept."""
    (tmp_path / "sensitivity.json").write_text('{"nodes": [{"node": "elsewhere", "error_ratio": 1.0}]}')
    with pytest.raises(Unsupported, match="fused away before quantization"):
        build("ort_static_int8", inputs | {"ort_sensitivity": tmp_path}, tmp_path / "made", keep_float=1)


@pytest.mark.parametrize(("rows", "message"), [(np.full((1, 8), np.nan), "holds NaN"), (np.zeros((1, 8)), None)])
def test_odd_calibration_data(linked_onnx, tmp_path, rows, message):
    """NaN is refused with the input's name; one constant row calibrates."""
    np.savez(tmp_path / "samples.npz", **{"0.x": rows.astype(np.float32)})
    inputs = {"source": linked_onnx, "prepared": tmp_path}
    if message is None:
        assert (build("ort_static_int8", inputs, tmp_path / "made") / "model.onnx").is_file()
        return
    with pytest.raises(Unsupported, match=message):
        build("ort_static_int8", inputs, tmp_path / "made")


def test_graph_without_products_cannot_be_packed(tmp_path):
    """Packing that packs nothing is no scheme of its own."""
    import onnx
    from onnx import TensorProto, helper

    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 8]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "graph", value[:1], value[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "relu.onnx")
    with pytest.raises(Unsupported, match="no matrix product with constant weights"):
        build("ort_matmul_nbits", {"source": tmp_path / "relu.onnx"}, tmp_path / "made")


def test_options_given_as_texts_are_listed(inputs, tiny_bert, tmp_path):
    """What ONNX Runtime takes without saying what it did is named as unverified."""
    engine = plugin("tuner.backends", "onnxruntime")
    context = Context(model=tiny_bert.facts, workload=tiny_bert.workload, cache_dir=str(tmp_path))
    asked = {"dynamic_block_base": 4, "denormal_as_zero": True, "disable_prepacking": True, "spin_duration_us": 100}
    session = engine.open(inputs["onnx_export"], engine.SessionSettings(intra_op_threads=1, **asked), context)
    assert set(asked) <= set(session.effective()["unverified"])
    assert set(session.run(tiny_bert.compared()[0][0])) == {"last_hidden_state"}
