"""Describes a model from its files alone, and refuses what cannot work before any process starts; imports no engine.

Only a model that is code (``py:``) is described by a process: a worker that runs it.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tuner.errors import UsageError
from tuner.models.asking import ask_facts
from tuner.models.digests import digest_files
from tuner.models.graphs import summarize
from tuner.models.pooling_files import pooling_of
from tuner.models.sources import locate
from tuner.models.tasks import architecture_of, check_task, task_of
from tuner.models.weights import find_weights, refuse_placeholder
from tuner.records.model import ModelFacts

DESCRIBING = re.compile(
    r"config\.json|tokenizer.*\.json|special_tokens_map\.json|added_tokens\.json|vocab\.(txt|json)|merges\.txt"
    r"|.*\.model|modules\.json|sentence_bert_config\.json|.*\.index\.json"
)
SHIFTED_POSITIONS = {"roberta", "xlm-roberta", "camembert", "mpnet", "longformer"}
"""Model types whose first positions are taken by the padding index."""
Described = tuple[ModelFacts, dict[str, Path]]
"""What the files say, without the digest, and the files that the digest is over."""


def inspect(
    model: str,
    task: str | None = None,
    *,
    cache_dir: Path | None = None,
    allow_network: bool = True,
    trust_code: bool = False,
    check: Callable[[ModelFacts], None] = lambda _: None,
) -> ModelFacts:
    """Describe `model`.

    Args:
        model: What the user named; `tuner.models.sources.locate` says what it may be.
        task: A task the user asked for; None takes the model's own.
        cache_dir: Where digests of big files are remembered; None: nowhere.
        allow_network: Whether a hub id may be fetched.
        trust_code: Whether a worker may run the code of a ``py:`` model.
        check: Told everything but the digest, before the files are read whole; it may refuse the model.

    Raises:
        UsageError: No such model, damaged or incomplete files, an unknown task.
        HostError: A hub model that can be neither found nor fetched.
    """
    if task is not None:
        check_task(task)
    kind, path = locate(model, allow_network=allow_network, trust_code=trust_code)
    if kind == "python":
        facts = ask_facts(model, path, task or "forward", cache_dir)
        check(facts)
        return facts
    if kind == "huggingface":
        facts, files = _inspect_directory(model, path, task)
    elif kind == "onnx":
        facts, files = _inspect_onnx(model, path, task)
    elif kind == "openvino":
        facts, files = _inspect_openvino(model, path, task)
    else:
        raise UsageError(
            f"{model}: GGUF files are not tuned yet: give the Hugging Face directory the file was made from"
        )
    check(facts)
    return facts.model_copy(update={"sha256": digest_files(files, cache_dir)})


def _inspect_directory(model: str, path: Path, task: str | None) -> Described:
    configuration = read_configuration(path, model)
    weights = find_weights(path)
    files = {entry.name: entry for entry in path.iterdir() if DESCRIBING.fullmatch(entry.name) and entry.is_file()}
    files |= {f"{entry.parent.name}/{entry.name}": entry for entry in path.glob("[0-9]*_*/*") if entry.is_file()}
    files |= {entry.name: entry for entry in weights.files}
    is_sentence_model = (path / "modules.json").is_file()
    found_task = task or task_of(configuration, is_sentence_model=is_sentence_model)
    facts = ModelFacts(
        source=model,
        kind="huggingface",
        path=str(path),
        sha256="",
        task=found_task,
        model_type=_text(configuration, "model_type"),
        architecture=architecture_of(configuration),
        weight_bytes=weights.n_bytes,
        n_parameters=weights.n_parameters,
        max_length=_max_length(configuration),
        hidden_size=_count(configuration, "hidden_size", "dim", "d_model"),
        n_layers=_count(configuration, "num_hidden_layers", "n_layers", "num_layers"),
        pooling=pooling_of(path) if found_task == "feature-extraction" else None,
        encode_length=_encode_length(path),
    )
    return facts, files


def _inspect_onnx(model: str, path: Path, task: str | None) -> Described:
    summary = summarize(path)
    files = {"model.onnx": path} | {location: path.parent / location for location in summary.external}
    facts = _facts_of_file(model, path, task, files).model_copy(
        update={"kind": "onnx", "weight_bytes": summary.n_bytes, "n_parameters": summary.n_parameters}
    )
    return facts, files


def _inspect_openvino(model: str, path: Path, task: str | None) -> Described:
    refuse_placeholder(path)
    weights = path.with_suffix(".bin")
    if not weights.is_file():
        raise UsageError(f"weights missing: {path.name} needs {weights.name} beside it in {path.parent}")
    if b"<net" not in path.read_bytes()[:4096]:
        raise UsageError(f"{path} is no OpenVINO model: it has no <net> at its start")
    files = {"model.xml": path, "model.bin": weights}
    return _facts_of_file(model, path, task, files), files


def _facts_of_file(model: str, path: Path, task: str | None, files: Mapping[str, Path]) -> ModelFacts:
    found_task = task or "forward"
    return ModelFacts(
        source=model,
        kind="openvino",
        path=str(path),
        sha256="",
        task=found_task,
        weight_bytes=sum(file.stat().st_size for file in files.values()),
        pooling=pooling_of(_described_in(path)) if found_task == "feature-extraction" else None,
    )


def _described_in(file: Path) -> Path:
    """Return the directory that may describe a graph: its own, or the one above where exports lie in ``onnx/``."""
    above = file.parent.parent
    return above if (above / "modules.json").is_file() and not (file.parent / "modules.json").is_file() else file.parent


def read_configuration(path: Path, model: str) -> dict[str, object]:
    """Read config.json of a Hugging Face directory.

    Raises:
        UsageError: The directory is empty, or config.json is missing or damaged.
    """
    file = path / "config.json"
    if not file.is_file():
        names = sorted(entry.name for entry in path.iterdir())
        if not names:
            raise UsageError(f"directory is empty: {model}")
        graphs = [name for name in names if name.endswith((".onnx", ".xml"))]
        hint = (
            f"to tune one of its files give --model {path / graphs[0]}" if graphs else "give a Hugging Face directory"
        )
        raise UsageError(f"no config.json in {model}: {hint}")
    refuse_placeholder(file)
    try:
        configuration = json.loads(file.read_text())
    except ValueError as error:
        raise UsageError(f"{file} is not JSON: {error}") from None
    if not isinstance(configuration, dict):
        raise UsageError(f"{file} holds no JSON object")
    return configuration


def _text(configuration: Mapping[str, object], name: str) -> str | None:
    value = configuration.get(name)
    return value if isinstance(value, str) else None


def _count(configuration: Mapping[str, object], *names: str) -> int | None:
    values = (configuration.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def _max_length(configuration: Mapping[str, object]) -> int | None:
    length = _count(configuration, "max_position_embeddings", "n_positions", "max_seq_len")
    if length is not None and configuration.get("model_type") in SHIFTED_POSITIONS:
        return length - 1 - (_count(configuration, "pad_token_id") or 1)
    return length


def _encode_length(path: Path) -> int | None:
    """Return where sentence-transformers would cut a text, in tokens."""
    try:
        content = json.loads((path / "sentence_bert_config.json").read_text())
    except (OSError, ValueError):
        return None
    return _count(content, "max_seq_length") if isinstance(content, dict) else None
