"""Steps that make OpenVINO models, on the tiny model: conversion from PyTorch, int8 with NNCF, compressed weights."""

import numpy as np
import pytest

from tuner.backends.base import Context, Unsupported
from tuner.plugins import plugin

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # the libraries' own
    pytest.mark.skipif(plugin("tuner.steps", "nncf_int8").installed() is None, reason="NNCF is not installed"),
]


@pytest.fixture
def error_of(answered):
    """Return a function that opens an artifact in float32 and gives the largest relative error over all samples."""

    def largest(artifact):
        assert sorted(file.name for file in artifact.iterdir()) == ["model.bin", "model.xml"]
        pairs = answered(artifact, "openvino", inference_precision="float32", threads=1)
        return max(float(np.linalg.norm(answer - right) / np.linalg.norm(right)) for answer, right in pairs)

    return largest


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_converted_model_answers_what_pytorch_answers(build, ranked, error_of, attention):
    """Names of inputs and outputs are the model's; every length of the traffic holds."""
    assert error_of(build("ov_convert", ranked, attention=attention)) < 1e-4


@pytest.mark.parametrize("asked", [{}, {"smooth_quant": False, "preset": "mixed"}, {"overflow_fix": True}])
def test_int8_resembles_the_reference(build, ranked, error_of, asked):
    """Every scheme gives a model that runs."""
    assert 0 < error_of(build("nncf_int8", ranked, **asked)) < 0.1


def test_kept_products_stay_unquantized(build, ranked):
    """Each product that is kept is one fewer with a quantized input."""
    none = build("nncf_int8", ranked)
    kept = build("nncf_int8", ranked, keep_float=6)
    counts = [(made / "model.xml").read_text().count('type="FakeQuantize"') for made in (none, kept)]
    assert counts[1] < counts[0]


def test_names_that_the_engine_does_not_know_are_refused(build, ranked, tmp_path):
    """A ranking of other names never ends as a model with nothing kept."""
    (tmp_path / "sensitivity.json").write_text('{"nodes": [{"node": "elsewhere", "error_ratio": 1.0}]}')
    with pytest.raises(Unsupported, match="have other names in OpenVINO"):
        build("nncf_int8", ranked | {"ort_sensitivity": tmp_path}, keep_float=1)


def test_weights_are_compressed(build, ranked, error_of):
    """Weights in 8 bits: a smaller file, nearly the same answers."""
    made = build("ov_weights", ranked)
    assert error_of(made) < 0.05
    assert (made / "model.bin").stat().st_size < 0.5 * (ranked["onnx_export"] / "model.onnx").stat().st_size


def test_compiled_model_comes_from_the_cache(ranked, tiny_bert, tmp_path):
    """The second load of one artifact says that it read the cache, and answers the same."""
    engine = plugin("tuner.backends", "openvino")
    context = Context(model=tiny_bert.facts, workload=tiny_bert.workload, cache_dir=str(tmp_path))
    found = []
    for _ in range(2):
        session = engine.open(ranked["onnx_export"], engine.SessionSettings(compiled_cache=True, threads=1), context)
        answer = session.run(tiny_bert.compared()[0][0])["last_hidden_state"]
        found.append((session.effective()["loaded_from_cache"], answer))
        session.close()
    assert [is_cached for is_cached, _ in found] == [False, True]
    np.testing.assert_array_equal(found[0][1], found[1][1])
