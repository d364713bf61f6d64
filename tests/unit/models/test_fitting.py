"""Workloads that cannot fit are refused before any process starts."""

import pytest

from tuner.errors import UsageError
from tuner.models.fitting import check_lengths, check_memory, estimate_bytes
from tuner.records.model import ModelFacts
from tuner.records.workload import Workload


@pytest.fixture
def facts():
    """Return a model of seven billion parameters kept in half precision."""
    return ModelFacts(
        source="big",
        kind="huggingface",
        path="/big",
        sha256="0",
        task="feature-extraction",
        weight_bytes=14 << 30,
        n_parameters=7 << 30,
        max_length=4096,
        hidden_size=4096,
    )


def test_model_too_large_is_refused_with_the_estimate(facts):
    """Estimate and budget are named."""
    with pytest.raises(UsageError, match=r"big needs about 6\d\.\d GiB .* but 16\.0 GiB are available"):
        check_memory(facts, Workload(task=facts.task), 16 << 30)


def test_budget_of_the_estimate_holds(facts):
    """Exactly enough is enough."""
    workload = Workload(task=facts.task)
    check_memory(facts, workload, estimate_bytes(facts, workload))


def test_estimate_grows_with_batch_and_length(facts):
    """Scores grow with the square of the length."""
    estimates = [
        estimate_bytes(facts, Workload(task=facts.task, lengths=(length,), batch_size=batch))
        for batch, length in ((1, 128), (1, 4096), (8, 4096))
    ]
    assert estimates == sorted(set(estimates))


@pytest.mark.parametrize("length", [4096, 1])
def test_lengths_up_to_the_limit_hold(facts, length):
    """The limit itself is allowed."""
    check_lengths(facts, Workload(task=facts.task, lengths=(length,)))


def test_length_above_the_limit_is_refused(facts):
    """Both figures are named."""
    with pytest.raises(UsageError, match="4097 is above the 4096 tokens"):
        check_lengths(facts, Workload(task=facts.task, lengths=(16, 4097)))
