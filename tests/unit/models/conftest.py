"""Model files small enough to write in a test."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def write_safetensors():
    """Return a function that writes one float32 tensor of n values."""

    def write(path: Path, n: int = 10) -> Path:
        header = json.dumps({"weight": {"dtype": "F32", "shape": [n], "data_offsets": [0, 4 * n]}}).encode()
        path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 4 * n)
        return path

    return write


@pytest.fixture
def bert_directory(tmp_path, write_safetensors):
    """Return a directory that looks like a BERT encoder; its weights mean nothing."""
    directory = tmp_path / "modèle: a b"
    directory.mkdir()
    configuration = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "max_position_embeddings": 64,
    }
    (directory / "config.json").write_text(json.dumps(configuration))
    write_safetensors(directory / "model.safetensors")
    return directory


@pytest.fixture
def write_onnx():
    """Return a function that writes ``y = x @ w``, its weights inside the file or beside it."""

    def write(path: Path, *, external: str | None = None, ir_version: int = 8) -> Path:
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        weight = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"])],
            "graph",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 4])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 4])],
            [weight],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=ir_version)
        if external:
            onnx.save(model, path, save_as_external_data=True, location=external, size_threshold=0)
        else:
            onnx.save(model, path)
        return path

    return write


@pytest.fixture
def tokenizer_file():
    """Return a function that writes a tokenizer.json: one token a letter, [CLS] and [SEP] around, no Chinese."""

    def write(directory: Path) -> Path:
        from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

        letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ .,;:'?!-0123456789"
        vocabulary = {name: i for i, name in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters])}
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106 - a word of the vocabulary
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        tokenizer.enable_padding(pad_id=0, length=50)
        tokenizer.enable_truncation(20)
        tokenizer.save(str(directory / "tokenizer.json"))
        return directory

    return write
