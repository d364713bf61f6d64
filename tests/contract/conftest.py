"""A tiny random BERT, prepared and exported once for all backends and steps."""

import os
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tuner.backends.base import Context
from tuner.messages import Prepare
from tuner.models.inspect import inspect
from tuner.models.judging import read_numbered
from tuner.models.prepare import prepare
from tuner.plugins import plugin
from tuner.records.model import ModelFacts
from tuner.records.workload import Workload


class TinyBert(NamedTuple):
    """A model directory, what is known of it, and its prepared workload."""

    directory: Path
    facts: ModelFacts
    workload: Workload
    prepared: Path

    def compared(self):
        """Return (sample, reference outputs) of samples whose full outputs are kept."""
        samples = read_numbered(self.prepared / "samples.npz")
        references = read_numbered(self.prepared / "references.npz")
        kept = [{k: v for k, v in reference.items() if k != "vectors"} for reference in references]
        return [(sample, reference) for sample, reference in zip(samples, kept, strict=True) if reference]


@pytest.fixture(scope="session")
def prepare_in():
    """Return a function that prepares a described model in a directory: the record, and the seconds of a call."""

    def run(facts, directory, *, data=None, max_samples=16, sample_budget_s=5.0, **workload):
        directory.mkdir(exist_ok=True)
        command = Prepare(
            model=facts,
            workload=Workload(task=facts.task, **workload),
            data=data,
            directory=str(directory),
            max_samples=max_samples,
            sample_budget_s=sample_budget_s,
        )
        return prepare(command)

    return run


@pytest.fixture(scope="session")
def tiny_shape():
    """Return the sizes of the tiny BERT."""
    return {
        "vocab_size": 128,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
    }


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory, tiny_shape, prepare_in):
    """Return a BERT of two layers with random weights, two lengths prepared."""
    directory = tmp_path_factory.mktemp("tiny bert")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries' own
        import torch
        from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
        from transformers import BertConfig, BertModel

        letters = "abcdefghijklmnopqrstuvwxyz"
        vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters])}
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106 - a word of the vocabulary
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        tokenizer.save(str(directory / "tokenizer.json"))
        torch.manual_seed(0)
        BertModel(BertConfig(**tiny_shape)).save_pretrained(directory)
        facts = inspect(str(directory))
        prepared = tmp_path_factory.mktemp("prepared")
        record, _ = prepare_in(facts, prepared, lengths=(16, 40))
    return TinyBert(directory, facts, record.workload, prepared)


@pytest.fixture(scope="session")
def tiny_classifier(tmp_path_factory, prepare_in):
    """Return a DistilBERT that labels tokens, without a tokenizer, prepared at one length."""
    directory, prepared = tmp_path_factory.mktemp("classifier"), tmp_path_factory.mktemp("prepared")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries' own
        from transformers import DistilBertConfig, DistilBertForTokenClassification

        shape = DistilBertConfig(
            vocab_size=128, dim=32, n_layers=1, n_heads=2, hidden_dim=64, max_position_embeddings=64
        )
        DistilBertForTokenClassification(shape).save_pretrained(directory)
        facts = inspect(str(directory))
        record, _ = prepare_in(facts, prepared, lengths=(16,))
    return TinyBert(directory, facts, record.workload, prepared)


@pytest.fixture(scope="session")
def tiny_onnx(tiny_bert, tmp_path_factory):
    """Return the directory of the tiny model's export."""
    directory = tmp_path_factory.mktemp("export")
    step = plugin("tuner.steps", "onnx_export")
    step.build({"source": tiny_bert.directory, "prepared": tiny_bert.prepared}, step.Settings(), directory)
    return directory


@pytest.fixture(scope="session")
def ranked(tiny_bert, tiny_onnx, tmp_path_factory):
    """Return the inputs of a quantizing step: export, prepared samples and ranking."""
    found = {"source": tiny_bert.directory, "prepared": tiny_bert.prepared, "onnx_export": tiny_onnx}
    directory = tmp_path_factory.mktemp("ranking")
    step = plugin("tuner.steps", "ort_sensitivity")
    step.build(found, step.Settings(), directory)
    return found | {"ort_sensitivity": directory}


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """Return a function that runs a step into a new directory and returns it."""

    def run(name, inputs, **asked):
        directory = tmp_path_factory.mktemp(name)
        step = plugin("tuner.steps", name)
        step.build(inputs, step.Settings(**asked), directory)
        return directory

    return run


@pytest.fixture
def answered(tiny_bert, tmp_path):
    """Return a function that opens an artifact and gives (answer, reference) of every sample, flat, in float64."""

    def run(artifact, backend="onnxruntime", **settings):
        engine = plugin("tuner.backends", backend)
        context = Context(model=tiny_bert.facts, workload=tiny_bert.workload, cache_dir=str(tmp_path / "cache"))
        session = engine.open(artifact, engine.SessionSettings(**settings), context)
        pairs = [
            tuple(found["last_hidden_state"].ravel().astype(np.float64) for found in (session.run(sample), reference))
            for sample, reference in tiny_bert.compared()
        ]
        session.close()
        return pairs

    return run


@pytest.fixture(scope="session")
def tiny_encoder(tiny_bert, tmp_path_factory):
    """Return the directory of the tiny model for CTranslate2, in float32."""
    directory = tmp_path_factory.mktemp("encoder")
    step = plugin("tuner.steps", "ct2_convert")
    step.build({"source": tiny_bert.directory, "prepared": tiny_bert.prepared}, step.Settings(), directory)
    return directory


@pytest.fixture
def linked_onnx(tmp_path_factory):
    """Return ``y = x @ w`` with external data, as a hub cache keeps it: both files are links to blobs."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weight = numpy_helper.from_array(np.eye(8, dtype=np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 8])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    blobs, snapshot = tmp_path_factory.mktemp("blobs"), tmp_path_factory.mktemp("snapshot")
    onnx.save(model, blobs / "a1", save_as_external_data=True, location="model.onnx.data", size_threshold=0)
    (blobs / "model.onnx.data").rename(blobs / "b2")
    for name, blob in (("model.onnx", "a1"), ("model.onnx.data", "b2")):
        (snapshot / name).symlink_to(os.path.relpath(blobs / blob, snapshot))
    return snapshot / "model.onnx"
