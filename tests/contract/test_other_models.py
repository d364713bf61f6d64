"""Models other than encoders, from traffic to every engine: cross-encoders, taggers, images, voice, odd graphs."""

import json
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

from tuner.backends.base import Context
from tuner.errors import UsageError
from tuner.messages import CheckFidelity
from tuner.models.inspect import inspect
from tuner.models.judging import judge, read_numbered
from tuner.plugins import plugin

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own
FAITHFUL = {
    "pytorch": {"threads": 1},
    "onnxruntime": {"intra_op_threads": 1},
    "openvino": {"inference_precision": "float32"},
}
LETTERS = "abcdefghijklmnopqrstuvwxyz "
PAIRS = [
    {"text": f"{letter}{letter} query", "pair": f"the answer to {letter} is a longer text", "label": 1}
    for letter in LETTERS.strip()
]


@pytest.fixture
def made(tmp_path, prepare_in):
    """Return a function that prepares a model and gives the facts, the record and the directory."""

    def make(model, task=None, **asked):
        facts, directory = inspect(str(model), task), tmp_path / "prepared"
        record, _ = prepare_in(facts, directory, **asked)
        return types.SimpleNamespace(facts=facts, record=record, directory=directory)

    return make


def answered(model, backend, step):
    """Open a prepared model with an engine, after a step where there is one, and judge it."""
    engine = plugin("tuner.backends", backend)
    if engine.installed() is None:
        pytest.skip(f"{backend} is not installed")
    artifact, place = Path(model.facts.path), model.directory.parent
    if step is not None:
        artifact = place / "built"
        artifact.mkdir()
        found = plugin("tuner.steps", step)
        found.build({"source": artifact, "prepared": model.directory}, found.Settings(), artifact)
    context = Context(model=model.facts, workload=model.record.workload, cache_dir=str(place / "cache"))
    session = engine.open(artifact, engine.SessionSettings(**FAITHFUL[backend]), context)
    fidelity = judge(model.directory, model.record, session.run, CheckFidelity(max_samples=16)).fidelity
    session.close()
    return fidelity


@pytest.fixture(scope="module")
def reranker(tmp_path_factory):
    """A BERT that scores pairs with one number, and a tokenizer that marks the second text."""
    directory = tmp_path_factory.mktemp("reranker")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries' own
        import torch
        from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
        from transformers import BertConfig, BertForSequenceClassification

        vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS])}
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106 - a word of the vocabulary
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        )
        tokenizer.save(str(directory / "tokenizer.json"))
        torch.manual_seed(0)
        shape = BertConfig(
            vocab_size=64,
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=64,
            num_labels=1,
        )
        model = BertForSequenceClassification(shape)
        model.classifier.weight.data *= 20
        model.bert.embeddings.token_type_embeddings.weight.data *= 20
        model.save_pretrained(directory)
    return directory


@pytest.fixture
def pairs(tmp_path):
    """A .jsonl of pairs."""
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in PAIRS))
    return str(file)


def test_pairs_are_read_together(made, reranker, pairs):
    """As transformers tokenizes pairs: types, special tokens, the longer text cut; timed rows have the exact length."""
    from transformers import PreTrainedTokenizerFast

    model = made(reranker, data=pairs, lengths=(24, 40))
    assert (model.record.method, model.record.texts) == ("classes", "data")
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(reranker / "tokenizer.json"))
    theirs.add_special_tokens({"pad_token": "[PAD]"})
    options = {"truncation": "longest_first", "max_length": 40, "return_token_type_ids": True}
    rows = [theirs(row["text"], row["pair"], **options) for row in PAIRS]
    expected = {(tuple(row["input_ids"]), tuple(row["token_type_ids"])) for row in rows}
    samples = read_numbered(model.directory / "samples.npz")
    found = {(tuple(sample["input_ids"][0]), tuple(sample["token_type_ids"][0])) for sample in samples}
    assert (len(found), found <= expected) == (16, True)
    batches = read_numbered(model.directory / "inputs.npz")
    assert {batch["input_ids"].shape[1] for batch in batches} == {24, 40}
    ends = {(batch["input_ids"] == 3).sum() for batch in batches}
    assert (ends, {batch["token_type_ids"].max() for batch in batches}) == ({2}, {1})


@pytest.mark.parametrize(
    ("backend", "step"),
    [("pytorch", None), ("onnxruntime", "onnx_export"), ("openvino", "onnx_export"), ("openvino", "ov_convert")],
)
def test_reranker_in_every_engine(made, reranker, pairs, backend, step):
    """Scores keep their order, but for two that are as good as equal."""
    model = made(reranker, data=pairs, lengths=(40,))
    fidelity = answered(model, backend, step)
    assert (fidelity.top1_agreement > 0.98, fidelity.n) == (True, 16)
    assert fidelity.abs_error_max < 1e-3


def test_types_matter_to_the_reranker(made, reranker, pairs, tmp_path):
    """The same rows without types are answered otherwise, and that is seen."""
    model = made(reranker, data=pairs, lengths=(40,))
    engine = plugin("tuner.backends", "pytorch")
    context = Context(model=model.facts, workload=model.record.workload, cache_dir=str(tmp_path))
    session = engine.open(reranker, engine.SessionSettings(threads=1), context)

    def without_types(batch):
        return session.run({**batch, "token_type_ids": np.zeros_like(batch["token_type_ids"])})

    found = judge(model.directory, model.record, without_types, CheckFidelity(max_samples=16)).fidelity
    assert found.top1_agreement < 0.99


@pytest.mark.parametrize("step", ["onnx_export", "ov_convert"])
def test_tagger_in_every_engine(made, tiny_classifier, step):
    """Every token's best label is the same."""
    model = made(tiny_classifier.directory, lengths=(16,))
    backend = {"onnx_export": "onnxruntime", "ov_convert": "openvino"}[step]
    fidelity = answered(model, backend, step)
    assert (model.facts.task, fidelity.top1_agreement, fidelity.n) == ("token-classification", 1, 16 * 16)


@pytest.fixture(scope="module")
def resnet(tmp_path_factory):
    """A small ResNet as transformers keeps it."""
    directory = tmp_path_factory.mktemp("resnet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries' own
        import torch
        from transformers import ResNetConfig, ResNetForImageClassification

        torch.manual_seed(0)
        shape = ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=5, num_channels=3
        )
        shape.image_size = 40
        ResNetForImageClassification(shape).save_pretrained(directory)
    return directory


@pytest.mark.parametrize(
    ("backend", "step"),
    [("pytorch", None), ("onnxruntime", "onnx_export"), ("openvino", "onnx_export"), ("openvino", "ov_convert")],
)
def test_image_classifier_in_every_engine(made, resnet, backend, step):
    """Images of the configuration's size, in batches of two."""
    model = made(resnet, batch_size=2)
    assert [(spec.name, spec.shape) for spec in model.record.inputs] == [("pixel_values", (None, 3, 40, 40))]
    assert read_numbered(model.directory / "inputs.npz")[0]["pixel_values"].shape == (2, 3, 40, 40)
    fidelity = answered(model, backend, step)
    assert (model.facts.task, fidelity.top1_agreement) == ("image-classification", 1)
    assert fidelity.abs_error_max < 1e-3


def graph(file, nodes, inputs, outputs, weights=()):
    """Write an .onnx graph; inputs and outputs are (name, type, shape)."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def infos(triples):
        return [helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape) for name, kind, shape in triples]

    parts = [helper.make_node(kind, ins, outs, **extra) for kind, ins, outs, extra in nodes]
    arrays = [numpy_helper.from_array(array, name) for name, array in weights]
    model = helper.make_model(
        helper.make_graph(parts, "graph", infos(inputs), infos(outputs), arrays),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.save(model, file)
    return file


@pytest.fixture
def convolution(tmp_path):
    """Two convolutions and a classifier, the batch free."""
    random = np.random.default_rng(0)

    def weight(name, *shape):
        return name, random.standard_normal(shape).astype(np.float32)

    nodes = [
        ("Conv", ["image", "a"], ["one"], {"pads": [1, 1, 1, 1]}),
        ("Relu", ["one"], ["two"], {}),
        ("Conv", ["two", "b"], ["three"], {"strides": [2, 2]}),
        ("GlobalAveragePool", ["three"], ["four"], {}),
        ("Flatten", ["four"], ["five"], {}),
        ("MatMul", ["five", "c"], ["logits"], {}),
    ]
    weights = [weight("a", 8, 3, 3, 3), weight("b", 16, 8, 3, 3), weight("c", 16, 10)]
    shape = ["batch", 3, 32, 32]
    return graph(
        tmp_path / "conv.onnx", nodes, [("image", "FLOAT", shape)], [("logits", "FLOAT", ["batch", 10])], weights
    )


@pytest.fixture
def voice(tmp_path):
    """What voice detectors look like: sound, a state that comes back, and the rate as a scalar that picks a branch."""
    nodes = [
        ("ReduceMean", ["input"], ["level"], {"axes": [1], "keepdims": 1}),
        ("ReduceMean", ["state"], ["before"], {"axes": [0, 2], "keepdims": 0}),
        ("Unsqueeze", ["before", "one"], ["column"], {}),
        ("Add", ["level", "column"], ["sum"], {}),
        ("Cast", ["sr"], ["rate"], {"to": 1}),
        ("Div", ["rate", "full"], ["scale"], {}),
        ("Mul", ["sum", "scale"], ["raw"], {}),
        ("Sigmoid", ["raw"], ["output"], {}),
        ("Unsqueeze", ["raw", "zero"], ["row"], {}),
        ("Add", ["state", "row"], ["stateN"], {}),
    ]
    weights = [
        ("one", np.array([1], np.int64)),
        ("zero", np.array([0], np.int64)),
        ("full", np.array(16_000, np.float32)),
    ]
    inputs = [("input", "FLOAT", [None, None]), ("state", "FLOAT", [2, None, 128]), ("sr", "INT64", [])]
    outputs = [("output", "FLOAT", [None, 1]), ("stateN", "FLOAT", [None, None, None])]
    return graph(tmp_path / "voice.onnx", nodes, inputs, outputs, weights)


@pytest.fixture
def features(tmp_path):
    """int32 ids, axes without a name, two outputs of different types."""
    table = np.random.default_rng(0).standard_normal((128, 8)).astype(np.float32)
    nodes = [
        ("Gather", ["table", "ids"], ["vectors"], {}),
        ("ReduceMean", ["vectors"], ["mean"], {"axes": [1], "keepdims": 0}),
        ("ArgMax", ["mean"], ["best"], {"axis": 1, "keepdims": 0}),
    ]
    outputs = [("mean", "FLOAT", [None, 8]), ("best", "INT64", [None])]
    return graph(tmp_path / "features.onnx", nodes, [("ids", "INT32", [None, None])], outputs, [("table", table)])


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("convolution", {"image": ("float32", (3, 3, 32, 32))}),
        ("voice", {"input": ("float32", (3, 512)), "state": ("float32", (2, 3, 128)), "sr": ("int64", ())}),
        ("features", {"ids": ("int32", (3, 7))}),
    ],
)
def test_graph_in_every_engine(made, request, backend, name, shapes):
    """Shapes and dtypes of the graph; every output agrees."""
    model = made(request.getfixturevalue(name), batch_size=3, lengths=(7,))
    batch = read_numbered(model.directory / "inputs.npz")[0]
    assert {name: (array.dtype.name, array.shape) for name, array in batch.items()} == shapes
    fidelity = answered(model, backend, None)
    assert fidelity.rel_error_max < 1e-4
    assert fidelity.n == 16


def test_classes_of_an_image_graph(made, convolution):
    """With --task image-classification the best class counts, and wrong answers are seen."""
    model = made(convolution, "image-classification")
    found = judge(
        model.directory,
        model.record,
        lambda batch: {"logits": np.eye(10, dtype=np.float32)[[0] * len(batch["image"])]},
        CheckFidelity(max_samples=16),
    ).fidelity
    assert (model.record.method, model.record.outputs) == ("classes", ("logits",))
    assert found.top1_agreement < 1


def test_rows_that_are_half_pairs_are_refused(made, reranker, tmp_path):
    """One line that names the row."""
    (tmp_path / "half.jsonl").write_text('{"text": "a", "pair": "b"}\n{"text": "a"}\n')
    with pytest.raises(UsageError, match=r"half\.jsonl, line 2: no pair"):
        made(reranker, data=str(tmp_path / "half.jsonl"), lengths=(16,))
