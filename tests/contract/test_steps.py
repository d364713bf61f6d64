"""One suite over every build step, through its entry point."""

import tomllib

import numpy as np
import pytest

from tuner.backends.base import Context, Unsupported
from tuner.errors import UsageError
from tuner.plugins import entry_points_of, plugin
from tuner.steps.base import Step

NAMES = list(entry_points_of("tuner.steps"))


@pytest.fixture(params=NAMES)
def step(request):
    """Return every step."""
    return plugin("tuner.steps", request.param)


def test_step_is_named_like_its_entry_point(step):
    """Entry point, class attribute and TOML say one name; it follows steps that exist."""
    assert isinstance(step, Step)
    assert tomllib.loads(step.space().read_text())["step"] == step.name
    assert set(step.after) <= set(NAMES)


def test_space_offers_only_settings_that_exist(step):
    """Every parameter of the TOML is a field of Settings, and its values are accepted."""
    parameters = tomllib.loads(step.space().read_text()).get("artifact", {}).get(step.name, {})
    for name, parameter in parameters.items():
        assert name in step.Settings.model_fields
        for value in parameter.get("values", []):
            step.Settings.model_validate({name: value})


def test_unknown_setting_is_refused(step):
    """A misspelt setting never vanishes."""
    with pytest.raises(UsageError, match="no_such_setting"):
        step.Settings.from_json('{"no_such_setting": 1}')


def answers(file, tiny_bert, tmp_path):
    """Run the compared samples through an ONNX file with ONNX Runtime."""
    backend = plugin("tuner.backends", "onnxruntime")
    context = Context(model=tiny_bert.facts, workload=tiny_bert.workload, cache_dir=str(tmp_path))
    session = backend.open(file, backend.SessionSettings(intra_op_threads=1), context)
    return [(session.run(sample), reference) for sample, reference in tiny_bert.compared()]


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_export_answers_what_pytorch_answers(tiny_bert, tmp_path, exporter, attention):
    """All four ways give model.onnx that holds on lengths that were not traced, with padding."""
    step = plugin("tuner.steps", "onnx_export")
    settings = step.Settings(exporter=exporter, attention=attention)
    step.build({"source": tiny_bert.directory, "prepared": tiny_bert.prepared}, settings, tmp_path)
    for answer, reference in answers(tmp_path, tiny_bert, tmp_path):
        np.testing.assert_allclose(answer["last_hidden_state"], reference["last_hidden_state"], atol=1e-4)


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_outputs_keep_their_names(tiny_classifier, tmp_path, backend):
    """A tensor that a graph gives two names is answered by its output's."""
    step = plugin("tuner.steps", "onnx_export")
    inputs = {"source": tiny_classifier.directory, "prepared": tiny_classifier.prepared}
    step.build(inputs, step.Settings(exporter="torchscript"), tmp_path)
    engine = plugin("tuner.backends", backend)
    context = Context(model=tiny_classifier.facts, workload=tiny_classifier.workload, cache_dir=str(tmp_path))
    session = engine.open(tmp_path, engine.SessionSettings(), context)
    assert list(session.run(tiny_classifier.compared()[0][0])) == ["logits"]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"weight_type": "QUInt8"},
        {"per_channel": True},
        {"reduce_range": True},
    ],
)
def test_quantized_graph_is_close(tiny_bert, tiny_onnx, tmp_path, asked):
    """Every setting gives a graph that runs and resembles the reference."""
    step = plugin("tuner.steps", "ort_dynamic_int8")
    step.build({"source": tiny_bert.directory, "onnx_export": tiny_onnx}, step.Settings(**asked), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    for answer, reference in answers(tmp_path, tiny_bert, tmp_path):
        left, right = answer["last_hidden_state"].ravel(), reference["last_hidden_state"].ravel()
        assert left @ right / np.linalg.norm(left) / np.linalg.norm(right) > 0.95


def test_graph_of_links_with_external_data_is_quantized(linked_onnx, tmp_path):
    """A hub cache: both files are symbolic links to blobs under other names."""
    step = plugin("tuner.steps", "ort_dynamic_int8")
    step.build({"source": linked_onnx}, step.Settings(), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]


def test_large_weights_lie_beside_the_graph(tiny_bert, tmp_path, monkeypatch):
    """Above the limit of one protobuf file, export and quantization keep weights in files of their own."""
    monkeypatch.setattr("tuner.steps.onnx_export.EXTERNAL_DATA_BYTES", 1000)
    monkeypatch.setattr("tuner.models.graph_steps.EXTERNAL_DATA_BYTES", 1000)
    exported, quantized = tmp_path / "exported", tmp_path / "quantized"
    inputs = {"source": tiny_bert.directory, "prepared": tiny_bert.prepared}
    for name, directory in (("onnx_export", exported), ("ort_dynamic_int8", quantized)):
        directory.mkdir()
        step = plugin("tuner.steps", name)
        step.build(inputs, step.Settings(), directory)
        inputs = {**inputs, name: directory}
        assert {file.name for file in directory.iterdir()} == {"model.onnx", "model.onnx.data"}
    for answer, reference in answers(exported, tiny_bert, tmp_path):
        np.testing.assert_allclose(answer["last_hidden_state"], reference["last_hidden_state"], atol=1e-4)
    assert len(answers(quantized, tiny_bert, tmp_path)) == 16


def test_graph_that_answers_otherwise_is_refused(tiny_bert, tmp_path, monkeypatch):
    """The check on other shapes compares figures, not only sizes."""
    monkeypatch.setattr("tuner.steps.onnx_export.LARGEST_ERROR", 0.0)
    step = plugin("tuner.steps", "onnx_export")
    inputs = {"source": tiny_bert.directory, "prepared": tiny_bert.prepared}
    with pytest.raises(Unsupported, match="differs from PyTorch by"):
        step.build(inputs, step.Settings(exporter="torchscript"), tmp_path)


def test_step_without_its_input_is_unsupported(tiny_bert, tmp_path):
    """Quantizing a directory that holds no graph says what is missing."""
    step = plugin("tuner.steps", "ort_dynamic_int8")
    with pytest.raises(Unsupported, match=r"needs an \.onnx file"):
        step.build({"source": tiny_bert.directory}, step.Settings(), tmp_path)
