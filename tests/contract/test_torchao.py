"""Int8 by torchao: compiled ahead of time it answers like the reference; elsewhere the library stays out of the way."""

import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest

from tuner.backends.base import Context, Unsupported
from tuner.models.linears import quantize_linears, unseen
from tuner.plugins import plugin
from tuner.tuning.engines import missing_steps

STEP = plugin("tuner.steps", "torchao_int8")
needs_library = [
    pytest.mark.skipif(STEP.installed() is None, reason="torchao is not installed"),
    pytest.mark.filterwarnings("ignore"),  # the libraries' own
]


@pytest.fixture
def context(tiny_bert, tmp_path):
    """Return the context of the tiny model."""
    return Context(model=tiny_bert.facts, workload=tiny_bert.workload, cache_dir=str(tmp_path))


def test_opening_a_model_leaves_the_library_out(tiny_bert, context):
    """A session without int8 neither imports it nor prints what it says; importing it later still works."""
    program = (
        "import sys; from pathlib import Path\n"
        "from tuner.backends.base import Context; from tuner.plugins import plugin\n"
        f"backend = plugin('tuner.backends', 'pytorch'); context = Context.from_json({context.to_json()!r})\n"
        f"backend.open(Path({str(tiny_bert.directory)!r}), backend.SessionSettings(), context)\n"
        "print('torchao' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert "torchao" not in done.stderr


@pytest.mark.parametrize(("text", "is_hidden"), [("{}", True), ('{"quantization_config": {}}', False)])
def test_models_quantized_beforehand_may_use_it(tmp_path, monkeypatch, text, is_hidden):
    """It is hidden while a model of plain weights is opened, never from one that says how it was quantized."""
    monkeypatch.delitem(sys.modules, "torchao", raising=False)
    (tmp_path / "config.json").write_text(text)
    with unseen(tmp_path):
        assert (sys.modules.get("torchao", "not there") is None) is is_hidden
    assert "torchao" not in sys.modules


def test_library_is_seen_again_after_an_error(tmp_path, monkeypatch):
    """What hides it goes away whatever happens."""
    monkeypatch.delitem(sys.modules, "torchao", raising=False)
    with pytest.raises(KeyError), unseen(tmp_path):
        raise KeyError
    assert "torchao" not in sys.modules


class TestQuantizing:
    """What becomes int8."""

    pytestmark = needs_library

    def test_large_layers_become_int8(self):
        """Layers of few outputs stay as they are; answers stay close."""
        import torch

        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
        inputs = torch.randn(3, 32)
        with torch.inference_mode():
            expected = module(inputs)
            head = module[2].weight.clone()
            assert quantize_linears(module) == 1
            answer = module(inputs)
        assert torch.equal(module[2].weight, head)
        assert 0 < float((answer - expected).norm() / expected.norm()) < 0.05

    def test_model_without_layers_is_unsupported(self):
        """A model that would stay as it is is refused, so that nothing is measured twice."""
        import torch

        with pytest.raises(Unsupported, match="no linear layer of 64 outputs"):
            quantize_linears(torch.nn.Sequential(torch.nn.Conv1d(1, 64, 1), torch.nn.Linear(64, 8)))

    @pytest.mark.slow
    @pytest.mark.parametrize("shapes", ["static", "dynamic"])
    def test_package_resembles_the_reference(self, tiny_bert, context, tmp_path, shapes):
        """Every compared sample; the session opens without the library and says what it computes in."""
        made = tmp_path / "made"
        made.mkdir()
        inputs = {"source": tiny_bert.directory, "prepared": tiny_bert.prepared}
        STEP.build(inputs, STEP.Settings(threads=1, shapes=shapes), made)
        backend = plugin("tuner.backends", "pytorch")
        session = backend.open(made, backend.SessionSettings(threads=1), context)
        for sample, reference in tiny_bert.compared():
            right = reference["last_hidden_state"]
            answer = session.run(sample)["last_hidden_state"]
            assert 0 < np.linalg.norm(answer - right) / np.linalg.norm(right) < 0.05
        assert session.effective()["precision"] == "int8_float32"
        assert not session.effective()["has_eager_calls"]


def _version(name):
    if name == "torchao":
        raise metadata.PackageNotFoundError(name)
    return metadata.version(name)


def test_absent_library_takes_its_step_alone(monkeypatch):
    """Without it the step is missing, with the extra that brings it; compiling without int8 stays."""
    monkeypatch.setattr("tuner.plugins.version", _version)
    missing = missing_steps()
    assert missing["torchao_int8"] == "pip install 'autotune-cpu[quant]'"
    assert "aot_inductor" not in missing
