"""Converts an encoder of the BERT family to CTranslate2's own files; checked on padded rows of other shapes."""

import warnings
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, cast

from tuner.errors import Unsupported
from tuner.models.encoders import answer, open_encoder
from tuner.models.tracing import Subject, differences, open_subject
from tuner.models.variants import answer_of
from tuner.models.wording import one_line
from tuner.plugins import installed_versions, space_file
from tuner.records import base
from tuner.records.encoder import Encoder

__all__ = ["Ct2Convert", "Ct2ConvertSettings"]


class Ct2ConvertSettings(base.Settings):
    """How weights are stored.

    Attributes:
        quantization: Type of the products' weights, int8 with a scale a row. The names with two types say what the
            rest is; which of them a CPU computes in is the session's matter.
    """

    quantization: Literal[
        "float32", "bfloat16", "float16", "int16", "int8", "int8_float32", "int8_bfloat16", "int8_float16"
    ] = "float32"


class Ct2Convert:
    """The step."""

    name: ClassVar[str] = "ct2_convert"
    Settings: ClassVar[type[base.Settings]] = Ct2ConvertSettings
    after: ClassVar[tuple[str, ...]] = ()
    build_guess_s: ClassVar[tuple[float, float]] = (8.0, 25.0)
    distributions: ClassVar[tuple[str, ...]] = ("ctranslate2", "torch", "transformers")
    extra: ClassVar[str] = "ctranslate2"

    def installed(self) -> dict[str, str] | None:
        """Return versions of what converts."""
        return installed_versions("ctranslate2", "torch", "transformers")

    def space(self) -> Traversable:
        """Return the space of its settings."""
        return space_file("ct2_convert.toml")

    def build(self, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write ``model.bin``, what the library keeps beside it, and ``encoder.json``.

        Raises:
            Unsupported: The library does not know the model, or its answers differ from PyTorch's.
        """
        chosen = cast("Ct2ConvertSettings", settings)
        subject = open_subject(inputs, "sdpa")
        encoder = _described(subject, chosen)
        try:
            with warnings.catch_warnings(action="ignore"):
                _convert(subject, encoder.n_tokens, directory, "float32")
        except Exception as error:
            raise Unsupported(f"conversion for CTranslate2: {type(error).__name__}: {one_line(error)}") from error
        _check(directory, encoder, subject)
        if chosen.quantization != "float32":
            _convert(subject, encoder.n_tokens, directory, chosen.quantization)  # replaces the directory
        (directory / "encoder.json").write_text(encoder.to_json(indent=1))


def _described(subject: Subject, chosen: Ct2ConvertSettings) -> Encoder:
    if subject.outputs != ("last_hidden_state",):
        raise Unsupported(f"CTranslate2 answers last_hidden_state alone, the model {', '.join(subject.outputs)}")
    configuration = _inner(subject).config
    offset = getattr(_inner(subject).embeddings.position_embeddings, "padding_idx", None)
    return Encoder(
        inputs=tuple(subject.example),
        output="last_hidden_state",
        quantization=chosen.quantization,
        n_tokens=configuration.vocab_size,
        n_types=getattr(configuration, "type_vocab_size", 0),
        longest=configuration.max_position_embeddings - (0 if offset is None else offset + 1),
    )


def _inner(subject: Subject) -> Any:  # noqa: ANN401 - a model of transformers
    return subject.module.inner


def _convert(subject: Subject, n_tokens: int, directory: Path, quantization: str) -> None:
    """Write the library's files for the open module.

    The library's loaders want a tokenizer, whose words serve calls with words; ours are with ids, so numbers do.
    """
    from ctranslate2.converters import TransformersConverter

    model = _inner(subject)
    if not hasattr(model.config, "position_embedding_type"):
        model.config.position_embedding_type = "absolute"  # transformers 5 has no others
    numbers = SimpleNamespace(unk_token="<0>", get_vocab=lambda: {f"<{number}>": number for number in range(n_tokens)})  # noqa: S106 - a word

    class OpenModel(TransformersConverter):  # type: ignore[misc]
        def load_model(self, model_class: Any, *_: object, **__: object) -> Any:  # noqa: ANN401 - as the library has it
            is_inside = "For" in model_class.__name__
            return SimpleNamespace(config=model.config, roberta=model) if is_inside else model

        def load_tokenizer(self, *_: object, **__: object) -> Any:  # noqa: ANN401 - as the library has it
            return numbers

    asked = None if quantization == "float32" else quantization
    OpenModel(model.config.name_or_path).convert(str(directory), quantization=asked, force=True)


def _check(directory: Path, encoder: Encoder, subject: Subject) -> None:
    """Compare with PyTorch in float32.

    Raises:
        Unsupported: The answers differ.
    """
    engine = open_encoder(directory, compute_type="float32")
    for batch in subject.checks:
        reason = differences(answer(engine, encoder, batch), answer_of(subject.module, batch), batch)
        if reason is not None:
            raise Unsupported(f"the converted encoder {reason}")
