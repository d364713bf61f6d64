"""Extremely randomised trees over coded points."""

import numpy as np
import pytest

from tuner.study.encoding import PointTable
from tuner.study.forest import forest_posterior


@pytest.fixture
def table(engine_space):
    """Return the table of a space with artifacts and precisions."""
    return PointTable(engine_space, engine_space.enumerate())


def jagged(table):
    """Return values that no sum of effects gives: a sign by the parity of two columns."""
    return np.where((table.codes[:, -1] + table.codes[:, 0]) % 2 == 0, 0.5, -0.5)


def test_finds_an_interaction(table):
    """Trees tell the two sides of a parity apart, on rows that they have seen."""
    rows = np.arange(len(table))
    found = forest_posterior(table, rows, jagged(table), rows, np.random.default_rng(0))
    assert np.sign(found.mean).tolist() == np.sign(jagged(table)).tolist()


def test_same_seed_same_answer(table):
    """Only the generator decides."""
    rows = np.arange(0, len(table), 2)
    first, second = (
        forest_posterior(table, rows, jagged(table)[rows], np.arange(5), np.random.default_rng(4)) for _ in range(2)
    )
    assert first.mean.tolist() == second.mean.tolist()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_trials_give_their_range(table, n):
    """With hardly any trials the answer lies among their values."""
    values = np.array([0.1, 0.2, 0.6])[:n]
    found = forest_posterior(table, np.arange(n), values, np.arange(len(table)), np.random.default_rng(0))
    assert found.mean.min() >= 0.1 - 1e-9
    assert found.mean.max() <= values.max() + 1e-9


def test_spread_is_never_zero(table):
    """Also where all trees agree, something is left open."""
    rows = np.arange(len(table))
    found = forest_posterior(table, rows, np.zeros(len(table)), rows, np.random.default_rng(0))
    assert found.sd.min() > 0
