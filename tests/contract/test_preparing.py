"""Workloads prepared from graphs of many shapes, and graphs that cannot work refused."""

import numpy as np
import pytest

from tuner.errors import UsageError
from tuner.messages import CheckFidelity
from tuner.models.inspect import inspect
from tuner.models.judging import judge, read_numbered
from tuner.models.references import open_reference


@pytest.fixture
def write_graph(tmp_path):
    """Return a function that writes nodes with inputs given as (name, type, shape) to an .onnx file."""

    def write(nodes, inputs, outputs, *, ir_version=8):
        import onnx
        from onnx import TensorProto, helper

        def infos(triples):
            return [helper.make_tensor_value_info(name, getattr(TensorProto, t), shape) for name, t, shape in triples]

        made = [helper.make_node(kind, ins, outs, **extra) for kind, ins, outs, extra in nodes]
        graph = helper.make_graph(made, "graph", infos(inputs), infos(outputs))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=ir_version)
        onnx.save(model, tmp_path / "model.onnx")
        return str(tmp_path / "model.onnx")

    return write


@pytest.fixture
def prepared(tmp_path, prepare_in):
    """Return a function that prepares a model and gives the record and the directory."""

    def run(model, task=None, **asked):
        directory = tmp_path / "prepared"
        record, call_s = prepare_in(inspect(model, task), directory, max_samples=20, **asked)
        assert call_s > 0
        return record, directory

    return run


def test_encoder_is_prepared_with_text(tiny_bert):
    """Ids, mask and types in int64, at the asked lengths; references are vectors and 16 token outputs."""
    batches = read_numbered(tiny_bert.prepared / "inputs.npz")
    assert {batch["input_ids"].shape for batch in batches} == {(1, 16), (1, 40)}
    assert list(batches[0]) == ["input_ids", "attention_mask", "token_type_ids"]
    assert {array.dtype.name for array in batches[0].values()} == {"int64"}
    references = read_numbered(tiny_bert.prepared / "references.npz")
    assert len(references) == 16
    assert np.linalg.norm(references[0]["vectors"]) == pytest.approx(1, abs=1e-5)


def test_classifier_without_tokenizer_is_prepared_with_made_up_ids(tiny_classifier):
    """Only the inputs that the model takes; logits are judged as classes."""
    from tuner.records.model import Prepared

    record = Prepared.from_json((tiny_classifier.prepared / "prepared.json").read_bytes())
    assert [spec.name for spec in record.inputs] == ["input_ids", "attention_mask"]
    assert (record.method, record.outputs, record.texts) == ("classes", ("logits",), "generated")


def test_reference_agrees_with_itself(tiny_bert):
    """Judged against its own file the reference is perfect."""
    reference = open_reference(tiny_bert.facts)
    from tuner.records.model import Prepared

    record = Prepared.from_json((tiny_bert.prepared / "prepared.json").read_bytes())
    done = judge(tiny_bert.prepared, record, reference.run, CheckFidelity(max_samples=16))
    assert done.fidelity.cosine_min == pytest.approx(1)


def test_int32_ids_with_types(write_graph, prepared):
    """Names and dtypes of the graph decide."""
    file = write_graph(
        [("Add", ["ids", "token_type_ids"], ["sum"], {}), ("Cast", ["sum"], ["y"], {"to": 1})],
        [("ids", "INT32", ["b", "s"]), ("token_type_ids", "INT32", ["b", "s"])],
        [("y", "FLOAT", None)],
    )
    record, directory = prepared(file, batch_size=3, lengths=(7,))
    batch = read_numbered(directory / "inputs.npz")[0]
    assert {name: (array.dtype.name, array.shape) for name, array in batch.items()} == {
        "ids": ("int32", (3, 7)),
        "token_type_ids": ("int32", (3, 7)),
    }
    assert (record.method, record.texts, record.outputs) == ("graph", "generated", ("y",))


def test_unnamed_axis_of_rank_three_floats(write_graph, prepared):
    """The size of a free axis is found by trying: here only 16 columns can be multiplied."""
    file = write_graph(
        [("Reshape", ["x", "shape"], ["y"], {})],
        [("x", "FLOAT", [None, None, 2]), ("shape", "INT64", [2])],
        [("y", "FLOAT", None)],
    )
    with pytest.raises(UsageError, match=r"made-up inputs .*x float32.* do not run: .*--data FILE\.npz"):
        prepared(file)


def test_length_that_the_graph_accepts_is_found(write_graph, prepared):
    """A product with a fixed side leaves one size for the free axis."""
    file = write_graph(
        [("MatMul", ["x", "v"], ["y"], {})],
        [("x", "FLOAT", [None, None]), ("v", "FLOAT", [80, 2])],
        [("y", "FLOAT", None)],
    )
    _, directory = prepared(file)
    assert read_numbered(directory / "inputs.npz")[0]["x"].shape == (1, 80)


def test_strings_are_refused(write_graph, prepared):
    """The input is named."""
    file = write_graph([("Identity", ["words"], ["y"], {})], [("words", "STRING", [None])], [("y", "STRING", [None])])
    with pytest.raises(UsageError, match="input 'words' takes str"):
        prepared(file)


def test_newer_ir_version_is_refused(write_graph, prepared):
    """The engine's reason, one line."""
    file = write_graph([("Identity", ["x"], ["y"], {})], [("x", "FLOAT", [1])], [("y", "FLOAT", [1])], ir_version=99)
    with pytest.raises(UsageError, match=r"refuses .*IR version: 99, .*: update ONNX Runtime, or save") as caught:
        prepared(file)
    assert "\n" not in str(caught.value)


def test_missing_head_is_refused(tiny_bert, prepared):
    """A classifier without trained weights would answer noise."""
    with pytest.raises(UsageError, match=r"lacks \d+ weights of task text-classification, e\.g\. classifier"):
        prepared(str(tiny_bert.directory), "text-classification", lengths=(8,))


def test_length_above_the_limit_is_refused(tiny_bert, prepared):
    """Before the model is opened."""
    with pytest.raises(UsageError, match="--lengths 65 is above the 64 tokens"):
        prepared(str(tiny_bert.directory), lengths=(65,))


def test_forward_keeps_every_output(tiny_bert, prepared):
    """As a plain graph the encoder has its pooler too."""
    record, _ = prepared(str(tiny_bert.directory), "forward", lengths=(8,))
    assert record.outputs == ("last_hidden_state", "pooler_output")


def test_fidelity_set_has_sixteen_rows_when_time_is_short(tiny_bert, prepare_in, tmp_path):
    """The budget shrinks the set, never below sixteen."""
    record, _ = prepare_in(tiny_bert.facts, tmp_path, max_samples=1000, sample_budget_s=0.0, lengths=(16, 40))
    assert record.n_samples == 16


def test_nonfinite_reference_is_refused(write_graph, prepared):
    """Nothing can be compared with NaN."""
    file = write_graph(
        [
            ("Sub", ["input_ids", "input_ids"], ["zero"], {}),
            ("Cast", ["zero"], ["z"], {"to": 1}),
            ("Div", ["z", "z"], ["y"], {}),
        ],
        [("input_ids", "INT64", [None, None])],
        [("y", "FLOAT", None)],
    )
    with pytest.raises(UsageError, match="output 'y' is not finite"):
        prepared(file, lengths=(4,))


def test_answers_drawn_anew_are_refused(write_graph, prepared):
    """A graph with a random operator: nothing could be compared, said before any time is spent."""
    nodes = [("RandomNormalLike", ["x"], ["noise"], {"scale": 0.5}), ("Add", ["x", "noise"], ["y"], {})]
    model = write_graph(nodes, [("x", "FLOAT", [1, 4])], [("y", "FLOAT", [1, 4])])
    with pytest.raises(UsageError, match=r"other values of y for the same inputs each time.*random operators"):
        prepared(model)
