"""One suite over every installed backend, through its entry point."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from tuner.backends.base import Backend, Context, Session, Unsupported
from tuner.errors import UsageError
from tuner.models.onnx_files import find_graph
from tuner.models.sources import locate
from tuner.plugins import entry_points_of, plugin

NAMES = list(entry_points_of("tuner.backends"))
ENGINES = [name for name in NAMES if name != "fake"]
THREADS = {
    "ctranslate2": "intra_threads",
    "pytorch": "threads",
    "onnxruntime": "intra_op_threads",
    "openvino": "threads",
    "fake": "threads",
}
FLOAT32 = {
    "ctranslate2": {"compute_type": "float32"},
    "openvino": {"inference_precision": "float32"},
    "pytorch": {"precision": "float32"},
}


@pytest.fixture(params=NAMES)
def backend(request):
    """Return every backend that is installed."""
    found = plugin("tuner.backends", request.param)
    if found.installed() is None:
        pytest.skip(f"{request.param} is not installed")
    return found


@pytest.fixture
def artifact(request, backend, tiny_bert):
    """Return what the backend opens: the source, the exported graph or the converted encoder."""
    made = {"ctranslate2": "tiny_encoder", "onnxruntime": "tiny_onnx", "openvino": "tiny_onnx"}.get(backend.name)
    return request.getfixturevalue(made) if made else tiny_bert.directory


@pytest.fixture
def context(tiny_bert, tmp_path):
    """Return the context of the tiny model."""
    return Context(model=tiny_bert.facts, workload=tiny_bert.workload, cache_dir=str(tmp_path))


def precision_of(backend):
    """Return the settings that force float32."""
    return FLOAT32.get(backend.name, {})


def test_backend_is_named_like_its_entry_point(backend):
    """Entry point, class attribute and TOML say one name."""
    assert isinstance(backend, Backend)
    assert backend.name in NAMES
    assert tomllib.loads(backend.space().read_text())["backend"] == backend.name


def test_space_offers_only_settings_that_exist(backend):
    """Every session parameter of the TOML is a field, and its listed values are accepted."""
    session = tomllib.loads(backend.space().read_text()).get("session", {})
    for name, parameter in session.items():
        assert name in backend.SessionSettings.model_fields
        for value in parameter.get("values", []):
            backend.SessionSettings.model_validate({name: value})


def test_settings_default_to_the_engine_own(backend):
    """No setting is needed, and one that is not asked is None."""
    assert set(backend.SessionSettings().model_dump().values()) <= {None}


def test_unknown_setting_is_refused(backend):
    """A misspelt setting never vanishes."""
    with pytest.raises(UsageError, match="no_such_setting"):
        backend.SessionSettings.from_json('{"no_such_setting": 1}')


def test_no_threads_are_refused(backend):
    """Zero threads would leave the choice, and the mask, to the engine."""
    with pytest.raises(UsageError, match=THREADS.get(backend.name, "threads")):
        backend.SessionSettings.from_json(f'{{"{THREADS[backend.name]}": 0}}')


def test_outputs_match_the_reference(backend, artifact, context, tiny_bert):
    """In float32 every engine answers what the reference answered, on every sample's shape."""
    if backend.name == "fake":
        pytest.skip("the fake backend computes no model")
    settings = backend.SessionSettings.model_validate(precision_of(backend))
    session = backend.open(artifact, settings, context)
    for sample, reference in tiny_bert.compared():
        answer = session.run(sample)
        for name, expected in reference.items():
            assert answer[name].dtype == expected.dtype
            np.testing.assert_allclose(answer[name], expected, atol=2e-4)
    session.close()


def test_outputs_outlive_the_next_call(backend, artifact, context, tiny_bert):
    """What a call answered is the caller's."""
    session = backend.open(artifact, backend.SessionSettings(), context)
    one, two = [sample for sample, _ in tiny_bert.compared()][:2]
    answer = session.run(one)
    before = {name: array.copy() for name, array in answer.items()}
    session.run(two)
    assert all(np.array_equal(answer[name], before[name]) for name in answer)
    session.close()


def test_settings_in_force_are_read_back(backend, artifact, context):
    """What is asked is what the runtime says; unreadable settings are listed by name."""
    asked = precision_of(backend) | {THREADS[backend.name]: 1}
    session = backend.open(artifact, backend.SessionSettings.model_validate(asked), context)
    assert isinstance(session, Session)
    effective = session.effective()
    assert {name: effective[name] for name in asked} == asked
    assert effective["threads"] == 1
    assert set(effective["unverified"]) <= set(backend.SessionSettings.model_fields)
    session.close()


def test_unreadable_artifact_is_unsupported(backend, context, tmp_path):
    """An engine that cannot open a file says so in one line."""
    if backend.name == "fake":
        pytest.skip("the fake backend opens nothing")
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(Unsupported) as caught:
        backend.open(tmp_path, backend.SessionSettings(), context)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_suffix_in_capitals_is_opened(name, tiny_bert, tiny_onnx, context, tmp_path):
    """GOOD.ONNX is a model as good.onnx is, to whatever says what it is and to the engines."""
    file = Path(shutil.copytree(tiny_onnx, tmp_path / "export") / "model.onnx").rename(
        tmp_path / "export" / "GOOD.ONNX"
    )
    assert (locate(str(file)).kind, find_graph({"source": file}, "a step")) == ("onnx", file)
    engine = plugin("tuner.backends", name)
    session = engine.open(file, engine.SessionSettings(), context)
    sample, reference = next(iter(tiny_bert.compared()))
    answer = session.run(sample)["last_hidden_state"]
    session.close()
    assert np.allclose(answer, reference["last_hidden_state"], atol=0.05)


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_hub_cache_of_links_is_opened(name, tiny_bert, linked_onnx, tmp_path):
    """A graph whose external data are links to blobs under other names opens."""
    backend = plugin("tuner.backends", name)
    if backend.installed() is None:
        pytest.skip(f"{name} is not installed")
    context = Context(model=tiny_bert.facts, workload=tiny_bert.workload, cache_dir=str(tmp_path))
    session = backend.open(linked_onnx, backend.SessionSettings(), context)
    assert session.run({"x": np.zeros((1, 8), np.float32)})["y"].shape == (1, 8)
    session.close()


def test_models_of_other_kinds_get_a_reason(backend, tiny_bert):
    """A kind that the backend cannot open is refused without a process."""
    if backend.name == "fake":
        pytest.skip("the fake backend takes everything")
    other = tiny_bert.facts.model_copy(update={"kind": "gguf"})
    assert "gguf" in backend.supports(other, tiny_bert.workload)
    assert backend.supports(tiny_bert.facts, tiny_bert.workload) is None


@pytest.mark.parametrize("backend", ["ctranslate2", "onnxruntime", "openvino", "fake"], indirect=True)
def test_engine_is_opened_without_torch(backend, artifact, tiny_bert, tmp_path):
    """A trial of ONNX Runtime, OpenVINO or CTranslate2 pays for no other library."""
    context = Context(model=tiny_bert.facts, workload=tiny_bert.workload, cache_dir=str(tmp_path))
    program = (
        "import sys; from pathlib import Path\n"
        "from tuner.backends.base import Context; from tuner.plugins import plugin\n"
        f"backend = plugin('tuner.backends', {backend.name!r}); context = Context.from_json({context.to_json()!r})\n"
        f"backend.open(Path({str(artifact)!r}), backend.SessionSettings(), context)\n"
        "import tuner.models.judging\n"
        "print(sorted({'torch', 'transformers', 'onnx', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
