"""Limits on outputs: the metric's, the task's own where rows are few, and trust in code that a profile names."""

import pytest

from tuner.errors import UsageError
from tuner.records.model import ModelFacts, Prepared, TensorSpec
from tuner.records.workload import Constraint, DataSource, Metric, Objective, Workload
from tuner.study.objective import default_constraints
from tuner.tuning.benching import bench_profile
from tuner.tuning.limits import LOSS, few_rows, with_limits
from tuner.tuning.retuning import retune
from tuner.tuning.verifying import verify_profile

FACTS = ModelFacts(source="m", kind="onnx", path="/m", sha256="0", task="feature-extraction", weight_bytes=1)
OWN = Constraint(path=LOSS, operator="<=", bound=0.01)
TASK = default_constraints("embedding")
COSINE = Constraint(path="fidelity.cosine_min", operator=">=", bound=0.9)


@pytest.mark.parametrize(
    ("asked", "n_rows", "expected"),
    [((), 299, (OWN,)), ((), 298, (OWN, *TASK)), ((COSINE,), 298, (COSINE, OWN))],
)
def test_metric_takes_the_place_of_the_tasks_limit_on_enough_rows(asked, n_rows, expected):
    """On too few rows both hold, unless the user has said what else does."""
    objective = with_limits(Objective(constraints=asked), FACTS, Metric(name="spearman", max_loss=0.01), n_rows)
    assert objective.constraints == expected


def test_without_a_metric_the_tasks_limit_holds():
    """What was asked without a metric keeps its digest of before there were any."""
    objective = with_limits(Objective(), FACTS, None, None)
    assert objective.constraints == TASK
    assert "metric" not in objective.model_dump(mode="json")
    assert Objective().digest() == "9e33f7df3953d45edfae94718262e35b346efe854e7bb102cce7ac9b650f0a25"


@pytest.mark.parametrize(
    ("n", "total", "expected"),
    [
        (400, 400, None),
        (100, 100, "give more rows or a larger --max-loss"),
        (100, 400, "give a larger --budget: it did not hold all rows"),
    ],
)
def test_too_few_rows_are_said(n, total, expected):
    """With what would help."""
    prepared = Prepared(
        model=FACTS,
        workload=Workload(task=FACTS.task, data=DataSource(source="a.jsonl", sha256="0", n=total)),
        inputs=(TensorSpec(name="ids", dtype="int64", shape=(None, None)),),
        outputs=("y",),
        n_batches=1,
        n_samples=n,
        items_per_batch=1,
        method="embedding",
        reference="test",
        metric=Metric(name="recall@10", max_loss=0.01),
        n_rows=n,
    )
    found = few_rows(prepared, Objective(constraints=(OWN,)))
    assert [notice.remedy for notice in found] == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    "act",
    [
        lambda p, path: bench_profile(p, path, processes=2, model=None, cache_dir=None, on_event=print),
        lambda p, path: verify_profile(p, path, budget_s=1.0, on_event=print),
        lambda p, path: retune(p, path, on_event=print),
    ],
)
def test_code_that_a_profile_names_needs_trust(profile, tmp_path, act):
    """Before anything is opened or started."""
    found = profile()
    metric = Metric(name="mine:score", max_loss=0.01, sha256="0" * 64)
    named = found.model_copy(
        update={
            "objective": found.objective.model_copy(update={"metric": metric}),
            "request": {"model": "m", "metric": "mine:score", "data": "rows.jsonl"},
        }
    )
    with pytest.raises(UsageError, match=r"p\.json runs mine:score as its metric: give --trust-code"):
        act(named, tmp_path / "p.json")
