"""How many samples outputs are compared on, and what making their reference may cost: shares of the budget."""

from tuner.records.model import Prepared
from tuner.records.workload import Objective

__all__ = ["MAX_SAMPLES", "affordable_samples", "reference_budget_s"]

LEAST_SAMPLES = 16
MAX_SAMPLES = 256
FIDELITY_SHARE = 0.05
"""Part of the budget for the reference, and again for each comparison."""
METRIC_SHARE = 0.10
"""Part of the budget that the reference may spend on the rows of a metric, once."""


def reference_budget_s(objective: Objective, budget_s: float) -> float:
    """Return the seconds of a budget that the reference may spend on samples."""
    return (FIDELITY_SHARE if objective.metric is None else METRIC_SHARE) * budget_s


def affordable_samples(prepared: Prepared, budget_s: float, call_s: float) -> int:
    """Return the samples of one comparison: what 5% of the budget pay for, 16 to 256; all rows of a metric.

    Args:
        prepared: Never more than its samples.
        budget_s: Of the run.
        call_s: Seconds of one call, 0 where that is not known.
    """
    if prepared.metric is not None:
        return prepared.n_samples
    affordable = int(FIDELITY_SHARE * budget_s / call_s) if call_s > 0 else MAX_SAMPLES
    return min(prepared.n_samples, max(LEAST_SAMPLES, min(MAX_SAMPLES, affordable)))
