"""A model described from its files, and damaged ones refused before anything runs."""

import json
import os
import shutil

import pytest

from tuner.errors import UsageError
from tuner.models.inspect import inspect
from tuner.records.model import Pooling

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0a\nsize 90868376\n"


def test_facts_of_a_directory(bert_directory):
    """Configuration and weights say what there is to know."""
    facts = inspect(str(bert_directory))
    assert (facts.kind, facts.task, facts.model_type, facts.architecture) == (
        "huggingface",
        "feature-extraction",
        "bert",
        "BertModel",
    )
    assert (facts.n_parameters, facts.hidden_size, facts.n_layers, facts.max_length) == (10, 32, 2, 64)
    assert facts.pooling == Pooling(mode="mean", normalize=True, source="default")


def test_moved_model_keeps_its_digest(bert_directory, tmp_path):
    """The digest is over content, not over places."""
    moved = shutil.copytree(bert_directory, tmp_path / "elsewhere")
    assert inspect(str(moved)).sha256 == inspect(str(bert_directory)).sha256


def test_hub_cache_of_links_has_the_same_digest(bert_directory, tmp_path):
    """Files that are symbolic links into blobs are the same model."""
    linked = tmp_path / "snapshots" / "abc"
    linked.mkdir(parents=True)
    for number, file in enumerate(bert_directory.iterdir()):
        blob = tmp_path / f"blob{number}"
        shutil.copy(file, blob)
        (linked / file.name).symlink_to(os.path.relpath(blob, linked))
    assert inspect(str(linked)).sha256 == inspect(str(bert_directory)).sha256


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "1_Pooling/config.json"])
def test_changed_file_changes_the_digest(bert_directory, name):
    """Configuration, tokenizer and pooling belong to the model."""
    before = inspect(str(bert_directory)).sha256
    file = bert_directory / name
    file.parent.mkdir(exist_ok=True)
    content = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(content | {"extra": 1}))
    assert inspect(str(bert_directory)).sha256 != before


def test_a_model_is_checked_before_it_is_read_whole(bert_directory, write_safetensors, tmp_path):
    """Whoever refuses a model by its size does so before its weights are hashed."""
    write_safetensors(bert_directory / "model.safetensors", 5 << 20)

    def refuse(facts):
        raise UsageError(f"{facts.weight_bytes >> 20} MiB are too much")

    with pytest.raises(UsageError, match="20 MiB are too much"):
        inspect(str(bert_directory), cache_dir=tmp_path / "cache", check=refuse)
    assert not (tmp_path / "cache").exists()


def test_readme_is_not_part_of_the_model(bert_directory):
    """Files that nothing reads do not count."""
    before = inspect(str(bert_directory)).sha256
    (bert_directory / "README.md").write_text("changed")
    assert inspect(str(bert_directory)).sha256 == before


def test_big_files_are_hashed_once(bert_directory, write_safetensors, tmp_path):
    """A remembered digest is used while size, time and inode are the same."""
    write_safetensors(bert_directory / "model.safetensors", 5 << 20)
    first = inspect(str(bert_directory), cache_dir=tmp_path / "cache").sha256
    (entry,) = (tmp_path / "cache" / "digests").iterdir()
    known = json.loads(entry.read_text())
    entry.write_text(json.dumps(known | {"sha256": "0" * 64}))
    assert inspect(str(bert_directory), cache_dir=tmp_path / "cache").sha256 != first
    assert inspect(str(bert_directory)).sha256 == first


def test_empty_directory(tmp_path):
    """Nothing there is said as that."""
    with pytest.raises(UsageError, match="directory is empty"):
        inspect(str(tmp_path))


def test_directory_of_graphs_names_one(tmp_path, write_onnx):
    """A directory with an .onnx and no config.json says how to name the file."""
    write_onnx(tmp_path / "model.onnx")
    with pytest.raises(UsageError, match=r"no config\.json .*--model .*model\.onnx"):
        inspect(str(tmp_path))


def test_safetensors_cut_short(bert_directory):
    """Both sizes are named."""
    file = bert_directory / "model.safetensors"
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(UsageError, match=f"truncated: header says {size} bytes, file has {size - 5}"):
        inspect(str(bert_directory))


@pytest.mark.parametrize("kept", [1, 9, 40])
def test_safetensors_cut_in_its_header(bert_directory, kept):
    """A header that is cut itself is truncated or unreadable, never a traceback."""
    file = bert_directory / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(UsageError, match=r"truncated|no safetensors file"):
        inspect(str(bert_directory))


def test_huge_header_is_not_read(bert_directory):
    """Text where the length should be does not ask for gigabytes."""
    (bert_directory / "model.safetensors").write_bytes(b"<html>not found</html>")
    with pytest.raises(UsageError, match="is no safetensors file"):
        inspect(str(bert_directory))


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_git_lfs_pointer(bert_directory, name):
    """The remedy is git lfs pull."""
    (bert_directory / name).write_bytes(LFS)
    with pytest.raises(UsageError, match="looks like a Git LFS pointer: run git lfs pull"):
        inspect(str(bert_directory))


def test_missing_weights(bert_directory):
    """A configuration without weights is no model."""
    (bert_directory / "model.safetensors").unlink()
    with pytest.raises(UsageError, match="no weights in"):
        inspect(str(bert_directory))


def test_missing_shard(bert_directory, write_safetensors):
    """An index whose shard is not there names it."""
    write_safetensors(bert_directory / "part-1.safetensors")
    (bert_directory / "model.safetensors").unlink()
    index = {"weight_map": {"a": "part-1.safetensors", "b": "part-2.safetensors"}}
    (bert_directory / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(UsageError, match=r"part-2\.safetensors is missing"):
        inspect(str(bert_directory))


def test_shards_are_counted_together(bert_directory, write_safetensors):
    """Parameters of all shards add up."""
    (bert_directory / "model.safetensors").unlink()
    for name in ("part-1.safetensors", "part-2.safetensors"):
        write_safetensors(bert_directory / name, 7)
    index = {"weight_map": {"a": "part-1.safetensors", "b": "part-2.safetensors"}}
    (bert_directory / "model.safetensors.index.json").write_text(json.dumps(index))
    assert inspect(str(bert_directory)).n_parameters == 14


def test_shard_outside_the_directory(bert_directory):
    """An index cannot reach elsewhere."""
    (bert_directory / "model.safetensors").unlink()
    index = {"weight_map": {"a": "../model.safetensors"}}
    (bert_directory / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(UsageError, match="outside its directory"):
        inspect(str(bert_directory))


def test_configuration_that_is_not_json(bert_directory):
    """The file is named."""
    (bert_directory / "config.json").write_text("{")
    with pytest.raises(UsageError, match=r"config\.json is not JSON"):
        inspect(str(bert_directory))


def test_unknown_task_names_the_nearest(bert_directory):
    """A misspelt task gets a suggestion, before the model is looked at."""
    with pytest.raises(UsageError, match="unknown task 'feature-extractoin': did you mean feature-extraction"):
        inspect(str(bert_directory), "feature-extractoin")


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("BertForSequenceClassification", "text-classification"),
        ("RobertaForTokenClassification", "token-classification"),
        ("BertForMaskedLM", "fill-mask"),
        ("BertForQuestionAnswering", "question-answering"),
    ],
)
def test_task_follows_the_architecture(bert_directory, architecture, task):
    """The head says what the model is for."""
    (bert_directory / "config.json").write_text(json.dumps({"architectures": [architecture]}))
    facts = inspect(str(bert_directory))
    assert (facts.task, facts.pooling) == (task, None)


def test_generation_is_refused_with_a_way_out(bert_directory):
    """What cannot be tuned yet says what can."""
    (bert_directory / "config.json").write_text(json.dumps({"architectures": ["GPT2LMHeadModel"]}))
    with pytest.raises(UsageError, match="--task forward"):
        inspect(str(bert_directory))


def test_pooling_of_a_sentence_model(bert_directory):
    """modules.json and the Pooling module decide; the cut of texts is kept apart from the limit."""
    modules = [
        {"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
    ]
    (bert_directory / "modules.json").write_text(json.dumps(modules))
    (bert_directory / "1_Pooling").mkdir()
    (bert_directory / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    (bert_directory / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 48}))
    facts = inspect(str(bert_directory))
    assert facts.pooling == Pooling(mode="cls", normalize=False, source="1_Pooling/config.json")
    assert (facts.encode_length, facts.max_length) == (48, 64)


def test_facts_of_a_graph(tmp_path, write_onnx):
    """An .onnx file is a plain graph with its parameters counted."""
    facts = inspect(str(write_onnx(tmp_path / "model.onnx")))
    assert (facts.kind, facts.task, facts.n_parameters) == ("onnx", "forward", 16)


def test_missing_external_data(tmp_path, write_onnx):
    """The missing file is named."""
    file = write_onnx(tmp_path / "model.onnx", external="weights.data")
    (tmp_path / "weights.data").unlink()
    with pytest.raises(UsageError, match=r"external data missing: model\.onnx needs weights\.data"):
        inspect(str(file))


def test_external_data_belong_to_the_digest(tmp_path, write_onnx):
    """Other weights beside the same graph are another model."""
    file = write_onnx(tmp_path / "model.onnx", external="weights.data")
    before = inspect(str(file))
    data = tmp_path / "weights.data"
    data.chmod(0o600)
    data.write_bytes(b"\1" * data.stat().st_size)
    assert inspect(str(file)).sha256 != before.sha256
    assert before.weight_bytes == file.stat().st_size + data.stat().st_size


@pytest.mark.parametrize("content", [b"", b"\x08", b"plain text, no graph", LFS])
def test_file_that_is_no_graph(tmp_path, content):
    """Damage, text and pointers are refused in one line."""
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(UsageError, match=r"model\.onnx"):
        inspect(str(tmp_path / "model.onnx"))


def test_openvino_model_needs_its_weights(tmp_path):
    """An .xml without its .bin names it."""
    (tmp_path / "model.xml").write_text('<?xml version="1.0"?><net name="a"></net>')
    with pytest.raises(UsageError, match=r"needs model\.bin"):
        inspect(str(tmp_path / "model.xml"))
