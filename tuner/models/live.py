"""Opens a Hugging Face directory as a PyTorch module that answers a dict of tensors; only workers call it.

Outputs, by task: feature-extraction keeps ``last_hidden_state`` (the pooler runs, as it does for every user of the
library, and its output is left out), classification and fill-mask ``logits``, question-answering its two logits;
``forward`` keeps every tensor the model answers, in its order, without caches.
"""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from tuner.errors import Unsupported, UsageError
from tuner.models.wording import one_line
from tuner.records.model import ModelFacts

if TYPE_CHECKING:
    import torch

Precision = Literal["float32", "bfloat16"]
Attention = Literal["sdpa", "eager"]

CLASSES = {
    "feature-extraction": "AutoModel",
    "text-classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "fill-mask": "AutoModelForMaskedLM",
    "question-answering": "AutoModelForQuestionAnswering",
}
CAUSAL = ("ForCausalLM", "LMHeadModel")
OUTPUTS: dict[str, tuple[str, ...]] = {
    "feature-extraction": ("last_hidden_state",),
    "text-classification": ("logits",),
    "token-classification": ("logits",),
    "fill-mask": ("logits",),
    "question-answering": ("start_logits", "end_logits"),
}
TEXT_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def live_module(
    facts: ModelFacts, dtype: Precision = "float32", attention: Attention | None = None
) -> "torch.nn.Module":
    """Open the model in eval mode; ``forward(**inputs)`` answers a dict of tensors by output name.

    Args:
        facts: A Hugging Face directory.
        dtype: Of the weights and the computation.
        attention: transformers' attention implementation; None: the library's choice.

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
        model, report = opener.from_pretrained(facts.path, output_loading_info=True, **options)
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


def text_inputs_of(module: "torch.nn.Module") -> tuple[str, ...]:
    """Return which of the tokenizer's arrays a flattened module takes, in the order of TEXT_INPUTS.

    Raises:
        Unsupported: It takes no token ids.
    """
    known = inspect.signature(module.inner.forward).parameters
    if "input_ids" not in known:
        raise Unsupported("the model takes no token ids: export it to .onnx and tune that")
    n_types = getattr(module.inner.config, "type_vocab_size", 0) or 0
    return tuple(name for name in TEXT_INPUTS if name in known and (name != "token_type_ids" or n_types > 1))
