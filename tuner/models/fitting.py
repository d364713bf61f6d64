"""Says before any process starts whether a workload fits a model and a machine; all figures are estimates."""

from tuner.errors import UsageError
from tuner.records.model import ModelFacts
from tuner.records.workload import Workload

RUNTIME_BYTES = 400 << 20
"""An interpreter with PyTorch loaded."""
WEIGHT_COPIES = 2.2
"""An engine holds the weights twice while it packs them, and the file's pages once for a while."""
FLOAT_BYTES = 4
WIDTH_FACTOR = 14
"""Activations alive at once, in hidden sizes: input, q, k, v, context and the feed-forward layer's four, twice."""
HEAD_WIDTH = 64


def estimate_bytes(facts: ModelFacts, workload: Workload) -> int:
    """Estimate the peak resident bytes of one process that runs `workload` in float32."""
    weights = FLOAT_BYTES * facts.n_parameters if facts.n_parameters is not None else facts.weight_bytes
    width = facts.hidden_size or 1024
    tokens = workload.batch_size * max(workload.lengths)
    scores = tokens * max(workload.lengths) * max(1, width // HEAD_WIDTH)
    activations = FLOAT_BYTES * (tokens * width * WIDTH_FACTOR + 2 * scores)
    return RUNTIME_BYTES + int(WEIGHT_COPIES * max(weights, facts.weight_bytes)) + activations


def check_memory(facts: ModelFacts, workload: Workload, memory_budget_bytes: int) -> None:
    """Refuse a model that cannot fit.

    Raises:
        UsageError: With the estimate and the budget.
    """
    needed = estimate_bytes(facts, workload)
    if needed > memory_budget_bytes:
        raise UsageError(
            f"{facts.source} needs about {needed / 2**30:.1f} GiB (batch {workload.batch_size}, "
            f"{max(workload.lengths)} tokens) but {memory_budget_bytes / 2**30:.1f} GiB are available: "
            "use a smaller model, batch or length, or more memory"
        )


def check_lengths(facts: ModelFacts, workload: Workload) -> None:
    """Refuse lengths that the model does not take.

    Raises:
        UsageError: One is above the model's limit.
    """
    longest = max(workload.lengths)
    if facts.max_length is not None and longest > facts.max_length:
        raise UsageError(f"--lengths {longest} is above the {facts.max_length} tokens that {facts.source} takes")
