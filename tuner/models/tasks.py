"""Names the task of a model from its configuration; it knows no engine."""

import difflib
from collections.abc import Mapping
from typing import Literal

from tuner.errors import UsageError

Method = Literal["embedding", "classes", "graph"]

METHODS: dict[str, Method] = {
    "feature-extraction": "embedding",
    "text-classification": "classes",
    "token-classification": "classes",
    "image-classification": "classes",
    "fill-mask": "graph",
    "question-answering": "graph",
    "forward": "graph",
}
"""How fidelity is judged, by task; these are the tasks that can be tuned."""

LATER = {
    "text-generation": "prefill and decoding are not tuned yet; --task forward tunes one forward pass of the graph",
    "text2text-generation": "encoder-decoder models are not tuned yet",
}

HEADS = {
    "ForSequenceClassification": "text-classification",
    "ForTokenClassification": "token-classification",
    "ForMaskedLM": "fill-mask",
    "ForQuestionAnswering": "question-answering",
    "ForCausalLM": "text-generation",
    "LMHeadModel": "text-generation",
    "ForConditionalGeneration": "text2text-generation",
    "ForImageClassification": "image-classification",
    "Model": "feature-extraction",
}


def check_task(task: str) -> str:
    """Return `task` if it can be tuned.

    Raises:
        UsageError: It is unknown (names the nearest) or comes later.
    """
    if task in METHODS:
        return task
    if task in LATER:
        raise UsageError(f"task {task}: {LATER[task]}")
    nearest = difflib.get_close_matches(task, METHODS, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]}?" if nearest else f"known: {', '.join(METHODS)}"
    raise UsageError(f"unknown task {task!r}: {hint}")


def task_of(configuration: Mapping[str, object], *, is_sentence_model: bool) -> str:
    """Return the task of a Hugging Face configuration; sentence-transformers models are feature-extraction.

    Raises:
        UsageError: The configuration does not say, or the task cannot be tuned.
    """
    if is_sentence_model:
        return "feature-extraction"
    architecture = architecture_of(configuration)
    if architecture is None:
        raise UsageError("config.json names no architecture: give --task")
    for ending, task in HEADS.items():
        if architecture.endswith(ending):
            return check_task(task)
    raise UsageError(f"config.json names architecture {architecture}, whose task is not known here: give --task")


def architecture_of(configuration: Mapping[str, object]) -> str | None:
    """Return the first architecture that a configuration names, or None."""
    names = configuration.get("architectures")
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None
