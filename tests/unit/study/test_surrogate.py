"""The Gaussian process over coded points."""

import numpy as np
import pytest

from tuner.study.encoding import PointTable
from tuner.study.surrogate import Gaussian


@pytest.fixture
def table(engine_space):
    """Return the table of a space with artifacts and precisions."""
    return PointTable(engine_space, engine_space.enumerate())


def additive(table):
    """Return values that are a sum of effects of the columns."""
    rng = np.random.default_rng(1)
    return sum(0.3 * rng.normal(size=table.columns[d].n_codes)[table.codes[:, d]] for d in range(len(table.columns)))


def fitted(table, values, rows, noise=1e-4):
    """Return the process after trials at rows."""
    process = Gaussian(table)
    process.fit(np.array(rows), values[rows], np.full(len(rows), noise))
    return process


def test_passes_through_precise_trials(table):
    """Where noise is small, the posterior is the value."""
    values = additive(table)
    rows = list(range(0, len(table), 3))
    posterior = fitted(table, values, rows, noise=1e-6).predict(np.array(rows))
    assert posterior.mean == pytest.approx(values[rows], abs=0.02)


def test_learns_effects_that_add_up(table):
    """From a third of the points it predicts the others to a few percent."""
    values = additive(table)
    rows = np.random.default_rng(0).choice(len(table), len(table) // 3, replace=False)
    posterior = fitted(table, values, rows).predict()
    assert float(np.sqrt(np.mean((posterior.mean - values) ** 2))) < 0.1 * float(values.std())


def test_untried_points_are_less_sure(table):
    """The spread at trials is below the spread at untried points."""
    rows = np.array([0, 5, 9, 14])
    posterior = fitted(table, additive(table), rows).predict()
    others = np.setdiff1d(np.arange(len(table)), rows)
    assert posterior.sd[rows].max() < posterior.sd[others].min()


def test_spread_covers_the_truth(table):
    """About nine in ten true values lie within 2 standard deviations."""
    values = additive(table)
    rows = np.random.default_rng(3).choice(len(table), 20, replace=False)
    posterior = fitted(table, values, rows).predict()
    assert float(np.mean(np.abs(posterior.mean - values) < 2 * posterior.sd)) > 0.85


def test_noise_is_believed(table):
    """A trial known to be noisy moves the posterior less than a precise one."""
    rows = np.array([0, 1])
    process = Gaussian(table)
    process.fit(rows, np.array([0.0, 0.4]), np.array([1e-6, 1e-6]), steps=0)
    precise = process.predict(rows).mean
    process.fit(rows, np.array([0.0, 0.4]), np.array([1e-6, 1.0]), steps=0)
    assert process.predict(rows).mean[1] < precise[1] - 0.1


def test_draws_agree_with_the_posterior(table):
    """Joint draws have the posterior's mean and spread."""
    process = fitted(table, additive(table), np.array([0, 4, 8, 15, 16]))
    rows = np.arange(10)
    posterior = process.predict(rows)
    draws = process.draw(rows, 20_000, np.random.default_rng(0))
    assert draws.mean(axis=0) == pytest.approx(posterior.mean, abs=0.02)
    assert draws.std(axis=0) == pytest.approx(posterior.sd, rel=0.05, abs=2e-3)


def test_one_trial_is_enough_to_predict(table):
    """With a single trial the posterior is finite everywhere."""
    posterior = fitted(table, additive(table), np.array([2])).predict()
    assert np.isfinite(posterior.mean).all()
    assert np.isfinite(posterior.sd).all()


def test_equal_trials_do_not_break_it(table):
    """Values without any spread give that value back."""
    posterior = fitted(table, np.full(len(table), 0.25), np.arange(12)).predict()
    assert posterior.mean == pytest.approx(np.full(len(table), 0.25), abs=1e-6)
