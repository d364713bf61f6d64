"""Races of finalists."""

import pytest

from tuner.compare.anchor import Anchor
from tuner.compare.race import near_best, run_race
from tuner.replay.noise_models import OK, QUIET
from tuner.replay.script import SimModel


def race(bench, named, calls, *, deadline_s=None, expected_trial_s=0.0, **options):
    """Race finalists whose calls take the given seconds."""
    models = {str(i): call if isinstance(call, SimModel) else SimModel(call) for i, call in enumerate(calls)}
    rig = bench({"base": SimModel(0.05), **models}, **options)
    anchor = Anchor(named("base"), rig)
    finalists = [named(str(i)) for i in range(len(calls))]
    return run_race(finalists, anchor, rig, deadline_s=deadline_s, expected_trial_s=expected_trial_s), rig


@pytest.mark.parametrize(
    ("expected", "sd", "most", "racing"),
    [
        ([0.0, -0.3, -0.26, -0.2], [0.0] * 4, 8, [1, 2]),
        ([0.0, -0.3, -0.26, -0.2], [0.0] * 4, 1, [1]),
        ([0.0, -0.3, -0.26, -0.2], [0.05] * 4, 8, [1, 2, 3]),
        ([-0.1], [0.2], 8, [0]),
    ],
)
def test_those_race_that_may_be_the_best(expected, sd, most, racing):
    """Within 5% of the best, or where the search cannot tell; best first."""
    assert near_best(expected, sd, most) == racing


def test_the_fastest_leads(bench, named):
    """Whatever the search thought."""
    outcome, _ = race(bench, named, [0.05, 0.04, 0.045], noise=OK)
    assert outcome.ranking[0] == 1


def test_those_behind_are_dropped_from_round_three(bench, named):
    """Twenty percent behind on a quiet host: three rounds, then one is left."""
    outcome, _ = race(bench, named, [0.05, 0.04], noise=QUIET)
    assert (outcome.rounds, outcome.stopped_by) == (3, "one_left")
    assert [len(values) for values in outcome.values] == [3, 3]


def test_equal_finalists_race_to_the_end(bench, named):
    """Eight rounds and no more."""
    outcome, _ = race(bench, named, [0.05, 0.05], noise=OK)
    assert (outcome.rounds, outcome.stopped_by) == (8, "rounds")


def test_time_ends_a_race_before_a_round(bench, named):
    """A round that would not end in time is not begun."""
    outcome, rig = race(bench, named, [0.05, 0.05], noise=OK, deadline_s=40.0, expected_trial_s=6.0)
    assert outcome.stopped_by == "time"
    assert 0 < outcome.rounds < 8
    assert rig.clock.now() <= 40.0


def test_without_a_round_the_search_order_stays(bench, named):
    """No time: the first finalist leads."""
    outcome, _ = race(bench, named, [0.05, 0.04], deadline_s=1.0, expected_trial_s=6.0)
    assert outcome.ranking == (0, 1)
    assert outcome.rounds == 0


def test_a_finalist_that_crashes_leaves_the_race(bench, named):
    """It comes last, however fast it was."""
    outcome, _ = race(bench, named, [SimModel(0.01, fault="crash"), 0.04, 0.05], noise=QUIET)
    assert outcome.ranking == (1, 2, 0)


def test_the_order_of_a_round_rotates(bench, named):
    """Nobody is always first after the anchor."""
    outcome, _ = race(bench, named, [0.05, 0.05, 0.05], noise=OK)
    names = [trial.config.session["name"] for trial in outcome.trials[:9]]
    assert names == list("012120201")


@pytest.mark.parametrize("seed", range(5))
def test_the_best_is_hardly_ever_dropped(bench, named, seed):
    """Three percent ahead on an ordinary host: still in after all rounds."""
    outcome, _ = race(bench, named, [0.05, 0.0485, 0.05], noise=OK, seed=seed)
    assert len(outcome.values[1]) == outcome.rounds
