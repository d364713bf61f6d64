"""The figures a playoff must reach, on simulated hosts with fixed seeds; the full counts are marked slow."""

import math

import numpy as np
import pytest
from scipy.stats import beta

from tuner.replay.noise_models import NEIGHBOUR, OK, PRESETS

FLOORS = {"ok": (0.97, 0.99), "bimodal": (0.77, 0.98), "rough": (0.67, 0.97), "neighbour": (0.97, 0.99)}
"""Least power at a true 5% and 8%: what was reached less three standard errors, so that nobody lowers it unseen."""


def upper_bound(count, n, confidence=0.99):
    """Return the one-sided Clopper-Pearson upper bound of a share."""
    return 1.0 if count == n else float(beta.ppf(confidence, count + 1, n - count))


def lower_bound(count, n, confidence=0.99):
    """Return the one-sided Clopper-Pearson lower bound of a share."""
    return 0.0 if count == 0 else float(beta.ppf(1 - confidence, count, n - count + 1))


def wins(outcomes):
    """Count the claims."""
    return sum(outcome.verdict == "WIN" for outcome in outcomes)


def coverage(outcomes, gain):
    """Return the share of reported intervals that hold the true speed-up."""
    return float(np.mean([outcome.speedup.ci95[0] <= gain <= outcome.speedup.ci95[1] for outcome in outcomes]))


def bias(outcomes, gain):
    """Return claimed over true speed-up, on average."""
    return math.fsum(outcome.speedup.ratio / gain for outcome in outcomes) / len(outcomes)


@pytest.mark.parametrize("name", PRESETS)
def test_equal_arms_hardly_ever_win(playoff_outcomes, name):
    """A/A, quick: no false win in 90 playoffs bounds their rate by 5%."""
    assert upper_bound(wins(playoff_outcomes(PRESETS[name], 1.0, range(90))), 90) <= 0.05


def test_the_sequential_design_fails_the_same_test(sequential_claims):
    """A then B, one process each: shown to claim far more than 5% of equal arms."""
    assert lower_bound(sequential_claims(OK, range(60)), 60) > 0.05


def test_a_lucky_alias_does_not_win(pipeline_outcomes):
    """Trials, race and playoff over aliases of one config: the search's luck is not the playoff's."""
    assert wins(pipeline_outcomes(NEIGHBOUR, range(15))) == 0


def test_five_percent_is_found_on_an_ordinary_host(playoff_outcomes):
    """Power at least 80% at a true 5%; the interval holds the truth; claims are not inflated."""
    outcomes = playoff_outcomes(OK, 1.05, range(80))
    assert wins(outcomes) / 80 >= 0.80
    assert coverage(outcomes, 1.05) >= 0.94
    assert 0.98 <= bias(outcomes, 1.05) <= 1.02


def test_eight_percent_is_found_on_an_ordinary_host(playoff_outcomes):
    """Power at least 95%."""
    assert wins(playoff_outcomes(OK, 1.08, range(60))) / 60 >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_false_wins_full(playoff_outcomes, name):
    """A/A, 2000 playoffs: at most 2.5%, 99% upper bound at most 5%; coverage and bias over all of them."""
    outcomes = playoff_outcomes(PRESETS[name], 1.0, range(2000))
    assert wins(outcomes) / 2000 <= 0.025
    assert upper_bound(wins(outcomes), 2000) <= 0.05
    assert 0.94 <= coverage(outcomes, 1.0) <= 0.99
    assert 0.98 <= bias(outcomes, 1.0) <= 1.02


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_false_wins_at_the_margin_full(playoff_outcomes, name):
    """A true 1% is not worthwhile: claimed in at most 4% (2.5% by design)."""
    assert upper_bound(wins(playoff_outcomes(PRESETS[name], 1.01, range(2000))), 2000) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_false_wins_of_the_pipeline_full(pipeline_outcomes, name):
    """Trials, race and playoff over aliases."""
    outcomes = pipeline_outcomes(PRESETS[name], range(300))
    assert wins(outcomes) / 300 <= 0.025
    assert upper_bound(wins(outcomes), 300) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_power_coverage_and_bias_full(playoff_outcomes, name):
    """True 5% and 8%: power, coverage, claimed over true over all playoffs and over the wins alone."""
    for gain, floor in zip((1.05, 1.08), FLOORS[name], strict=True):
        outcomes = playoff_outcomes(PRESETS[name], gain, range(1000))
        assert wins(outcomes) / 1000 >= floor
        assert coverage(outcomes, gain) >= 0.94
        assert 0.98 <= bias(outcomes, gain) <= 1.02
        assert 0.98 <= bias([outcome for outcome in outcomes if outcome.verdict == "WIN"], gain) <= 1.02


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_the_sequential_design_fails_full(sequential_claims, name):
    """On every noise model."""
    assert lower_bound(sequential_claims(PRESETS[name], range(500)), 500) > 0.05
