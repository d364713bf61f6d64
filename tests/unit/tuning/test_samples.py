"""Samples of a comparison: as many as a share of the budget pays for, within limits; all rows of a metric."""

import types

import pytest

from tuner.records.workload import Metric, Objective
from tuner.tuning.samples import affordable_samples, reference_budget_s

METRIC = Metric(name="spearman", max_loss=0.01)


@pytest.mark.parametrize(
    ("budget_s", "call_s", "n_prepared", "expected"),
    [
        (900.0, 0.5, 256, 90),
        (900.0, 0.0, 256, 256),
        (900.0, 1e-4, 300, 256),
        (900.0, 60.0, 256, 16),
        (900.0, 60.0, 9, 9),
    ],
    ids=["a twentieth", "cost not known", "most", "least", "fewer there"],
)
def test_samples(budget_s, call_s, n_prepared, expected):
    """Without a metric, 5% of the budget in calls, 16 to 256, never more than there are."""
    prepared = types.SimpleNamespace(metric=None, n_samples=n_prepared)
    assert affordable_samples(prepared, budget_s, call_s) == expected


def test_rows_of_a_metric():
    """They are scored whole, however long that takes."""
    assert affordable_samples(types.SimpleNamespace(metric=METRIC, n_samples=4000), 60.0, 10.0) == 4000


def test_a_metric_may_cost_twice_as_much():
    """The reference runs its rows once."""
    assert [reference_budget_s(one, 100.0) for one in (Objective(), Objective(metric=METRIC))] == [5.0, 10.0]
