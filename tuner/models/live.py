"""Opens a Hugging Face directory or a ``py:`` model as a module that answers a dict of tensors; only in workers.

Outputs of a directory, by task: feature-extraction keeps ``last_hidden_state`` (the pooler runs, as it does for every
user of the library, and its output is left out), classification and fill-mask ``logits``, question-answering its two
logits; ``forward`` keeps every tensor the model answers, in its order, without caches. A ``py:`` model answers all its
tensors: by their own names, or ``output``, or ``output_0``, ``output_1``, ….
"""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from tuner.errors import Unsupported, UsageError
from tuner.models.functions import Examples, call_function, named_examples, specs_of, weights_digest
from tuner.models.linears import unseen
from tuner.models.variants import Precision, adapted
from tuner.models.wording import one_line
from tuner.records.model import ModelFacts, TensorSpec

if TYPE_CHECKING:
    import torch

__all__ = ["Attention", "Live", "Precision", "flattened", "live_module", "open_live"]

Attention = Literal["sdpa", "eager"]

CLASSES = {
    "feature-extraction": "AutoModel",
    "text-classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "fill-mask": "AutoModelForMaskedLM",
    "question-answering": "AutoModelForQuestionAnswering",
    "image-classification": "AutoModelForImageClassification",
}
CAUSAL = ("ForCausalLM", "LMHeadModel")
OUTPUTS: dict[str, tuple[str, ...]] = {
    "feature-extraction": ("last_hidden_state",),
    "text-classification": ("logits",),
    "token-classification": ("logits",),
    "fill-mask": ("logits",),
    "question-answering": ("start_logits", "end_logits"),
    "image-classification": ("logits",),
}
IMAGE_SIZE = 224
"""Where a configuration names none."""
TEXT_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Live(NamedTuple):
    """An open model.

    Attributes:
        module: ``forward(**inputs)`` answers a dict of tensors by output name.
        inputs: What it takes, in order; None for a free axis.
        examples: Example inputs that it brought, None if it brought none.
        configuration: Of transformers, None for a ``py:`` model.
    """

    module: "torch.nn.Module"
    inputs: tuple[TensorSpec, ...]
    examples: dict[str, np.ndarray] | None = None
    configuration: object | None = None


def open_live(
    facts: ModelFacts,
    precision: Precision | None = None,
    attention: Attention | None = None,
    *,
    channels_last: bool = False,
) -> Live:
    """Open a model in eval mode.

    Args:
        facts: A Hugging Face directory or a ``py:`` model.
        precision: Of the weights and the computation; None: float32 for a directory, a ``py:`` model as it comes.
        attention: transformers' attention implementation; None: the library's choice; nothing to a ``py:`` model.
        channels_last: Whether weights and inputs of convolutions lie channels last.

    Raises:
        Unsupported: It cannot be opened so.
        UsageError: Files lack the weights of the task's head, or code fails or is another model than was described.
    """
    if facts.kind == "python":
        live = _live_function(facts)
    else:
        module = live_module(facts, "bfloat16" if precision == "bfloat16" else "float32", attention)
        live = Live(module, _inputs_of(module), None, module.inner.config)
    return live._replace(module=adapted(live.module, precision, channels_last=channels_last))


def _live_function(facts: ModelFacts) -> Live:
    """Call the function of a ``py:`` model and see that it gives the model that was described."""
    model, given = call_function(facts.source, Path(facts.path))
    if facts.weights_sha256 is not None and weights_digest(model) != facts.weights_sha256:
        raise UsageError(
            f"{facts.source} gives other weights than before: they changed on disk, or they are drawn anew at every "
            "call (seed them, or load them from a file)"
        )
    examples = named_examples(model, given, facts.source)
    arrays = {name: tensor.numpy() for name, tensor in examples.tensors.items()}
    return Live(_named(model, examples), specs_of(examples.tensors), arrays)


def live_module(
    facts: ModelFacts, dtype: Literal["float32", "bfloat16"] = "float32", attention: Attention | None = None
) -> "torch.nn.Module":
    """Open the model in eval mode; ``forward(**inputs)`` answers a dict of tensors by output name.

    Args:
        facts: A Hugging Face directory.
        dtype: Of the weights and the computation.
        attention: transformers' attention implementation; None: the library's choice, which stands too where a model
            has no ``sdpa`` (what came out is read from its configuration).

    Raises:
        Unsupported: transformers cannot open it so.
        UsageError: The files lack the weights of the task's head.
    """
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    options: dict[str, Any] = {"dtype": getattr(torch, dtype), "local_files_only": True, "trust_remote_code": False}
    if attention is not None:
        options["attn_implementation"] = attention
    opener = getattr(transformers, _class_name(facts))
    try:
        with unseen(Path(facts.path)):
            model, report = _opened(opener, facts.path, options)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, ImportError) as error:
        raise Unsupported(
            f"transformers {transformers.__version__} cannot open {facts.source}: {one_line(error)}"
        ) from error
    missing = [name for name in report["missing_keys"] if "pooler" not in name]
    if missing:
        raise UsageError(
            f"{facts.source} lacks {len(missing)} weights of task {facts.task}, e.g. {min(missing)}: "
            "choose the --task the model was trained for"
        )
    return flattened(model.eval(), facts.task)


def _opened(opener: Any, path: str, options: dict[str, Any]) -> Any:  # noqa: ANN401 - transformers is untyped
    """Return the model and the report of its loading; a model without ``sdpa`` has its library's choice."""
    try:
        return opener.from_pretrained(path, output_loading_info=True, **options)
    except ValueError as error:
        if options.get("attn_implementation") != "sdpa" or "attn_implementation" not in str(error):
            raise
    return opener.from_pretrained(
        path, output_loading_info=True, **{k: v for k, v in options.items() if k != "attn_implementation"}
    )


def _class_name(facts: ModelFacts) -> str:
    if facts.task in CLASSES:
        return CLASSES[facts.task]
    is_causal = facts.architecture is not None and facts.architecture.endswith(CAUSAL)
    return "AutoModelForCausalLM" if is_causal else "AutoModel"


def flattened(model: "torch.nn.Module", task: str) -> "torch.nn.Module":
    """Wrap `model` so that it answers a dict of the tensors that `task` needs; ``.inner`` is the model."""
    import torch

    wanted = OUTPUTS.get(task)
    fixed = {"use_cache": False} if "use_cache" in inspect.signature(model.forward).parameters else {}

    class Flattened(torch.nn.Module):  # type: ignore[misc]
        """Answers only tensors, by name."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, **inputs: "torch.Tensor") -> dict[str, "torch.Tensor"]:
            answer: Mapping[str, object] = self.inner(**inputs, **fixed, return_dict=True)
            if wanted is not None:
                return {name: answer[name] for name in wanted}
            return {name: value for name, value in answer.items() if isinstance(value, torch.Tensor)}

    return Flattened().eval()


def _named(model: "torch.nn.Module", examples: Examples) -> "torch.nn.Module":
    """Wrap a module of any kind so that it takes its inputs by name and answers a dict of tensors."""
    import torch

    class Named(torch.nn.Module):  # type: ignore[misc]
        """Answers only tensors, by name."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, **inputs: "torch.Tensor") -> dict[str, "torch.Tensor"]:
            given = {**examples.constants, **inputs}
            if examples.order:
                return _tensors_of(self.inner(*[given[name] for name in examples.order]))
            return _tensors_of(self.inner(**given))

    return Named().eval()


def _tensors_of(answer: object) -> "dict[str, torch.Tensor]":
    import torch

    if isinstance(answer, torch.Tensor):
        return {"output": answer}
    if isinstance(answer, Mapping):
        return {str(name): value for name, value in answer.items() if isinstance(value, torch.Tensor)}
    values = answer if isinstance(answer, (tuple, list)) else ()
    return {f"output_{index}": value for index, value in enumerate(values) if isinstance(value, torch.Tensor)}


def _inputs_of(module: "torch.nn.Module") -> tuple[TensorSpec, ...]:
    """Return what a module of transformers takes: those of the tokenizer's arrays that it knows, or images.

    Raises:
        Unsupported: Neither.
    """
    known, configuration = inspect.signature(module.inner.forward).parameters, module.inner.config
    if "input_ids" in known:
        n_types = getattr(configuration, "type_vocab_size", 0) or 0
        names = [name for name in TEXT_INPUTS if name in known and (name != "token_type_ids" or n_types > 1)]
        return tuple(TensorSpec(name=name, dtype="int64", shape=(None, None)) for name in names)
    if "pixel_values" not in known:
        raise Unsupported("the model takes neither token ids nor images: export it to .onnx and tune that")
    size = getattr(configuration, "image_size", None) or IMAGE_SIZE
    height, width = size if isinstance(size, (tuple, list)) else (size, size)
    channels = getattr(configuration, "num_channels", None) or 3
    return (TensorSpec(name="pixel_values", dtype="float32", shape=(None, channels, height, width)),)
