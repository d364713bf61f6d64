"""Expected seconds of builds: a step's guess by the model's size, then what was measured."""

import pytest

from tuner.artifacts.store import Manifest
from tuner.records.model import ModelFacts
from tuner.study.build_times import UNKNOWN_STEP_S, BuildTimes, guess_s

GIB = 2**30
MODEL = ModelFacts(
    source="m", kind="huggingface", path="/m", sha256="a" * 64, task="feature-extraction", weight_bytes=GIB // 8
)
LARGER = 2 * GIB


def manifest(step, build_s, *, model="b" * 64, weight_bytes=None):
    """Return what the store remembers of a build."""
    made_of = {"what": "artifact", "model": model, "chain": [{"step": "first"}, {"step": step}]}
    return Manifest(key="k", made_of=made_of, build_s=build_s, created_s=0.0, files=(), weight_bytes=weight_bytes)


def test_a_larger_model_is_guessed_to_take_longer():
    """The guess grows with the weights, in a line."""
    small, middle, large = (guess_s("onnx_export", size) for size in (0, GIB, 2 * GIB))
    assert 0 < small < middle
    assert large - middle == pytest.approx(middle - small)


def test_compiling_is_guessed_to_take_longest():
    """Of a model of 91 MB, ahead-of-time compiling takes about a minute, quantizing seconds."""
    seconds = {step: guess_s(step, 91_000_000) for step in ("aot_inductor", "onnx_export", "ort_dynamic_int8")}
    assert 50 <= seconds["aot_inductor"] <= 70
    assert 2 <= seconds["ort_dynamic_int8"] <= 5 < seconds["onnx_export"] <= 15


def test_what_this_model_took_replaces_the_guess():
    """The median of this model's builds, whatever others took."""
    own = [manifest("onnx_export", seconds, model=MODEL.sha256) for seconds in (7.0, 40.0, 9.0)]
    times = BuildTimes(MODEL, [*own, manifest("onnx_export", 1e4, weight_bytes=LARGER)])
    assert times.expected_s("onnx_export") == 9.0


def test_other_models_correct_the_guess():
    """Where another model took twice its guess, so will this one."""
    times = BuildTimes(MODEL, [manifest("onnx_export", 2 * guess_s("onnx_export", LARGER), weight_bytes=LARGER)])
    assert times.expected_s("onnx_export") == pytest.approx(2 * guess_s("onnx_export", MODEL.weight_bytes))
    assert times.expected_s("aot_inductor") == guess_s("aot_inductor", MODEL.weight_bytes)


@pytest.mark.parametrize(
    "strange",
    [
        manifest("onnx_export", 1e4),
        manifest("uninstalled_step", 1e4, weight_bytes=GIB),
        Manifest(key="k", made_of={"what": "prepared"}, build_s=1e4, created_s=0.0, files=()),
    ],
    ids=["of unknown size", "of an unknown step", "no chain"],
)
def test_what_tells_nothing_is_passed_over(strange):
    """Manifests of older versions, of steps that are gone and of other things change no guess."""
    assert BuildTimes(MODEL, [strange]).expected_s("onnx_export") == guess_s("onnx_export", MODEL.weight_bytes)


def test_a_step_without_a_guess(monkeypatch):
    """A step of a plug-in that gives none has one all the same."""
    monkeypatch.setattr("tuner.study.build_times.plugin", lambda _group, _name: object())
    assert guess_s("theirs", 0) == UNKNOWN_STEP_S[0]
