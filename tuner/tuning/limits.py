"""The limits of a run on outputs: the user's, those of the metric, and the task's own; says where rows are too few."""

from collections.abc import Iterable

from tuner.errors import UsageError
from tuner.measure.scores import rows_for_claim
from tuner.models.metrics import MOST_TEXTS
from tuner.models.tasks import METHODS
from tuner.records.measurement import Notice
from tuner.records.model import ModelFacts, Prepared
from tuner.records.workload import Constraint, Metric, Objective
from tuner.study.objective import default_constraints

LOSS = "fidelity.metric_loss_high"


def with_limits(objective: Objective, model: ModelFacts, metric: Metric | None, n_rows: int | None) -> Objective:
    """Return an objective with the metric and its limit, and with the task's limit where nothing takes its place.

    A limit of the user's on any fidelity figure takes its place, and a metric on enough rows to show its limit.

    Raises:
        UsageError: A limit on a metric that is not measured.
    """
    own = [limit for limit in objective.constraints if limit.path.startswith("fidelity.")]
    if metric is None:
        refuse_unmeasured(own)
    else:
        objective = objective.model_copy(update={"metric": metric})
        objective = _and(objective, [Constraint(path=LOSS, operator="<=", bound=metric.max_loss)])
        least = rows_for_claim(metric.max_loss)
        if least is not None and n_rows is not None and n_rows >= least:
            return objective
    return objective if own else _and(objective, default_constraints(METHODS[model.task]))


def few_rows(prepared: Prepared, objective: Objective) -> list[Notice]:
    """Return a notice where the rows are too few to show the limit of the metric."""
    metric, n = prepared.metric, prepared.n_rows
    if metric is None or n is None:
        return []
    scale = max(1.0, abs(prepared.metric_reference or 0.0)) if metric.is_code else 1.0
    least = rows_for_claim(metric.max_loss, scale)
    if least is not None and n >= least:
        return []
    needed = "no number of rows would" if least is None else f"{least} would"
    detail = f"{n} rows are too few to show that {metric.name} loses at most {metric.max_loss:g}: {needed}"
    if set(default_constraints(prepared.method)) <= set(objective.constraints):
        detail += "; the task's own limit is kept beside it"
    is_cut = n < min(prepared.workload.data.n or n, MOST_TEXTS // 2)
    remedy = "give a larger --budget: it did not hold all rows" if is_cut else "give more rows or a larger --max-loss"
    return [Notice(code="few_rows", detail=detail, remedy=remedy)]


def refuse_unmeasured(limits: Iterable[Constraint]) -> None:
    """Refuse limits on a metric where there is none.

    Raises:
        UsageError: Names the limit.
    """
    for limit in limits:
        if limit.path.startswith("fidelity.metric"):
            raise UsageError(f"{limit.path} is limited but not measured: give --metric and --data")


def _and(objective: Objective, limits: Iterable[Constraint]) -> Objective:
    return objective.model_copy(update={"constraints": (*objective.constraints, *limits)})
