"""`tuner.load` on a real encoder of a few kilobytes: texts and arrays equal the reference."""

import json
import signal
from pathlib import Path

import numpy as np
import pytest

import tuner
from tuner.errors import ProfileMismatch
from tuner.hardware.detection import detect
from tuner.loading.files import read_profile
from tuner.models.inspect import inspect
from tuner.plugins import installed_versions

TEXTS = ["the cat sat on the mat", "a", "dogs bark at night and the moon is full", "the end"]
WORDS = sorted({word for text in TEXTS for word in text.split()})


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """Return the directory of a random BERT with one layer and a tokenizer of words."""
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing
    from transformers import BertConfig, BertModel

    directory = tmp_path_factory.mktemp("tiny bert")
    vocabulary = {word: index for index, word in enumerate(["[PAD]", "[CLS]", "[SEP]", "[UNK]", *WORDS])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106 - a token of text
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    tokenizer.save(str(directory / "tokenizer.json"))
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    model = BertModel(BertConfig(vocab_size=len(vocabulary), max_position_embeddings=16, **sizes))
    model.save_pretrained(directory)
    return directory


@pytest.fixture(scope="module")
def reference(bert):
    """Return a function that gives the masked mean of a text in plain float32, computed one text at a time."""
    import torch
    from transformers import BertModel

    model = BertModel.from_pretrained(bert, attn_implementation="eager").eval()
    vocabulary = json.loads((bert / "tokenizer.json").read_text())["model"]["vocab"]

    def vector(text):
        ids = torch.tensor([[1, *(vocabulary[word] for word in text.split()), 2]])
        with torch.inference_mode():
            found = model(input_ids=ids).last_hidden_state[0].mean(dim=0)
        return (found / found.norm()).numpy()

    return vector


@pytest.fixture
def profile_path(bert, profile_document, tmp_path):
    """Return the path of a profile of that model on this host, PyTorch with one thread."""
    facts = inspect(str(bert), None)
    best = profile_document()["best"]
    best["config"] = {"backend": "pytorch", "session": {"threads": 1}}
    document = profile_document(
        best=best,
        fallback={"config": {"backend": "pytorch"}},
        hardware=detect().model_dump(mode="json"),
        software=installed_versions("torch", "transformers"),
        model={"source": str(bert), "sha256": facts.sha256, "task": facts.task},
        workload={"task": facts.task, "batch_size": 2},
    )
    (tmp_path / "p.json").write_text(json.dumps(document))
    return tmp_path / "p.json"


def test_encode_equals_the_reference(profile_path, reference):
    """Vectors of texts of mixed lengths are those of each text alone, in order."""
    with tuner.load(profile_path) as model:
        found = model.encode(TEXTS)
    assert np.allclose(found, [reference(text) for text in TEXTS], atol=1e-5)


def test_chunks_equal_the_reference(profile_path, reference):
    """A chunked text is the weighted mean of its chunks' vectors."""
    with tuner.load(profile_path) as model:
        found = model.encode(["the cat sat on the"], chunk=5)
    expected = (3 * reference("the cat sat") + 2 * reference("on the")) / 5
    assert np.allclose(found, [expected / np.linalg.norm(expected)], atol=1e-5)


def test_run_takes_and_gives_arrays(profile_path):
    """`run` is the engine's own call: numpy in, numpy out."""
    ids = np.array([[1, 4, 5, 2]])
    with tuner.load(profile_path) as model:
        outputs = model.run({"input_ids": ids, "attention_mask": np.ones_like(ids)})
    assert next(iter(outputs.values())).shape == (1, 4, 32)


def test_what_is_in_force_is_told(profile_path):
    """The thread count is read back, and nothing came too late."""
    with tuner.load(profile_path) as model:
        assert (model.effective.threads, model.not_applied) == (1, {})


def test_moved_model(profile_path, bert, tmp_path, reference):
    """A model that moved is loaded from where it is now."""
    moved = tmp_path / "moved"
    moved.mkdir()
    for file in bert.iterdir():
        (moved / file.name).write_bytes(file.read_bytes())
    with tuner.load(profile_path, model=moved) as model:
        assert np.allclose(model.encode(["the end"]), [reference("the end")], atol=1e-5)


def test_changed_model_is_refused(profile_path, bert, tmp_path):
    """A changed byte of the weights is another model, also where strict is off."""
    changed = tmp_path / "changed"
    changed.mkdir()
    for file in bert.iterdir():
        content = bytearray(file.read_bytes())
        if file.suffix == ".safetensors":
            content[-1] ^= 1
        (changed / file.name).write_bytes(content)
    with pytest.raises(ProfileMismatch, match=r"is not the one the profile p\.json was made for"):
        tuner.load(profile_path, model=changed, strict=False)


def test_mask_that_came_too_late(profile_path):
    """Strict loading names `autotune exec` where a mask was not set before the start."""
    document = json.loads(profile_path.read_text())
    document["best"]["config"]["process"] = {"env": {"OMP_NUM_THREADS": "1"}}
    profile_path.write_text(json.dumps(document))
    with pytest.raises(ProfileMismatch, match=r"OMP_NUM_THREADS.*start it with `autotune exec"):
        tuner.load(profile_path)


def test_too_late_without_strict(profile_path):
    """Without strict, the best is served and what came too late is told."""
    document = json.loads(profile_path.read_text())
    document["best"]["config"]["process"] = {"env": {"OMP_NUM_THREADS": "1"}}
    profile_path.write_text(json.dumps(document))
    with tuner.load(profile_path, strict=False) as model:
        assert (set(model.not_applied), model.effective.threads) == ({"process.env.OMP_NUM_THREADS"}, 1)


def test_other_library_version_serves_the_fallback(profile_path):
    """Where the fingerprint refuses, strict loading does too, and the fallback serves without it."""
    document = json.loads(profile_path.read_text())
    document["software"]["torch"] = "1.0.0"
    profile_path.write_text(json.dumps(document))
    with pytest.raises(ProfileMismatch, match=r"software\.torch"):
        tuner.load(profile_path)
    with tuner.load(profile_path, strict=False) as model:
        assert set(model.not_applied) == {"software.torch"}


def test_missing_artifact_serves_the_fallback(profile_path):
    """An artifact that is gone is refused, and without strict the fallback serves."""
    document = json.loads(profile_path.read_text())
    document["best"]["artifacts"] = [{"path": "a/model.onnx", "sha256": "0" * 64, "bytes": 1}]
    profile_path.write_text(json.dumps(document))
    with pytest.raises(ProfileMismatch, match=r"a/model\.onnx"):
        tuner.load(profile_path)
    with tuner.load(profile_path, strict=False) as model:
        assert set(model.not_applied) == {"artifact"}


def test_baseline_that_has_to_be_built(bert, start, tmp_path):
    """What the user runs today may be an exported graph: built first, measured, and served while nothing beats it."""
    mine = {"backend": "onnxruntime", "artifact": [{"step": "onnx_export"}], "session": {"intra_op_threads": 1}}
    (tmp_path / "mine.json").write_text(json.dumps(mine))
    options = ("--lengths", "16", "--backends", "onnxruntime", "--baseline", "mine.json", "--cache-dir", "cache")
    running = start("tune", "--model", str(bert), *options, "--output", "p.json", cwd=tmp_path)
    running.wait_for("baseline")
    assert running.end(signal.SIGINT).code == 130
    profile = read_profile(tmp_path / "p.json")
    assert [call.step for call in profile.best.config.artifact] == ["onnx_export"]
    assert {Path(file.path).suffix for file in profile.best.artifacts} >= {".onnx"}
