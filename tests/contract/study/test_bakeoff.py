"""The search against chance on drawn courses; a few runs by default, more with -m slow."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

STUDIES = Path(__file__).parents[3] / "studies"


@pytest.fixture(scope="module")
def bakeoff():
    """Return the arenas and searches of the bake-off scripts."""
    sys.path.insert(0, str(STUDIES))
    try:
        arenas, searches = importlib.import_module("bakeoff_arenas"), importlib.import_module("bakeoff_searches")
    finally:
        sys.path.remove(str(STUDIES))
    return SimpleNamespace(arena=arenas.arena, SEARCHES=searches.SEARCHES)


def played(bakeoff, search, course, seed, n):
    """Return the steps of one run on the made-up space of two CPUs."""
    return list(bakeoff.SEARCHES[search][0](bakeoff.arena(course, 2), seed, n))


def test_the_search_ends_near_the_best(bakeoff):
    """After 60 of 4,000 points it is within 5% of the best on each course, within 2% on most; chance is not."""
    regrets = [played(bakeoff, "ours (auto)", course, 0, 60)[-1].regret for course in (0, 4, 5)]
    assert max(regrets) <= 0.05
    assert sorted(regrets)[1] <= 0.02
    chance = [played(bakeoff, "random", course, seed, 60)[-1].regret for course in (0, 4, 5) for seed in range(3)]
    assert np.median(chance) > 0.05


def test_a_run_repeats_exactly(bakeoff):
    """The same seed and course give the same seconds and regrets."""
    assert played(bakeoff, "ours (auto)", 4, 7, 25) == played(bakeoff, "ours (auto)", 4, 7, 25)


@pytest.mark.slow
def test_bars_on_drawn_courses(bakeoff):
    """Regret at 60 trials: median at most 2%, 90th percentile at most 5%; two seeds within 3% in nine of ten pairs."""
    regrets = np.array(
        [[played(bakeoff, "ours (auto)", course, seed, 60)[-1].regret for seed in range(5)] for course in range(12)]
    )
    gaps = np.abs(np.log1p(regrets[:, :, None]) - np.log1p(regrets[:, None, :]))[:, *np.triu_indices(5, 1)]
    assert np.median(regrets) <= 0.02
    assert np.quantile(regrets, 0.9) <= 0.05
    assert np.mean(gaps <= np.log(1.03)) >= 0.9
