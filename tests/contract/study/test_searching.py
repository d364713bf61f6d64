"""The order of a search over rows, its models and its stop rule."""

import numpy as np
import pytest

from tuner.study.encoding import PointTable
from tuner.study.portfolio import ROTATION, Portfolio, expected_improvement
from tuner.study.searching import BUILD_S, Costs, Searcher
from tuner.study.stopping import StopRule, chance_of_gain
from tuner.study.surrogate import Posterior
from tuner.study.trying import Tried


@pytest.fixture
def table(engine_space):
    """Return the table of a space with artifacts and precisions."""
    return PointTable(engine_space, engine_space.enumerate())


@pytest.fixture
def truth(table):
    """Return true values: effects that add up, a little noise of each point."""
    rng = np.random.default_rng(5)
    values = sum(0.2 * rng.normal(size=table.columns[d].n_codes)[table.codes[:, d]] for d in range(len(table.columns)))
    return values + 0.002 * rng.normal(size=len(table))


@pytest.fixture
def make_searcher(table, engine_space):
    """Return a function that makes a searcher whose artifacts are all built."""

    def make(seed=0, rotation=ROTATION, *, is_built=True):
        seeds = [table.row_of(point) for point in engine_space.artifact_points()]
        searcher = Searcher(table, seeds=seeds, seed=seed, rotation=rotation)
        if is_built:
            searcher.costs.built = set(table.artifacts.tolist())
        return searcher

    return make


def run(searcher, truth, n, label=lambda _row: "feasible"):
    """Play a search without noise and return its rows."""
    rows = []
    for _ in range(n):
        found = searcher.next()
        if found is None:
            break
        rows.append(found[0])
        searcher.note(Tried(found[0], float(truth[found[0]]), 0.005, label(found[0])), trial_s=4.0)
    return rows


def test_seeds_come_first(make_searcher, truth):
    """Screening starts with one point of every artifact and precision."""
    searcher = make_searcher()
    seeds = list(searcher.seeds)
    assert run(searcher, truth, len(seeds)) == seeds


@pytest.mark.parametrize("arm", ["gaussian", "forest", "neighbour"])
def test_never_repeats(make_searcher, truth, table, arm):
    """Every arm tries each row once and ends when there is none left."""
    rows = run(make_searcher(rotation=(arm,)), truth, len(table) + 5)
    assert sorted(rows) == list(range(len(table)))


def test_same_seed_same_order(make_searcher, truth):
    """A search repeats exactly."""
    assert run(make_searcher(seed=3), truth, 40) == run(make_searcher(seed=3), truth, 40)


def test_finds_the_best_early(make_searcher, truth, table):
    """Of 112 points it needs less than a quarter to come within 1% of the best."""
    rows = run(make_searcher(), truth, len(table) // 4)
    assert min(truth[rows]) < truth.min() + 0.01


def test_the_incumbent_is_free_of_luck(table):
    """One lucky noisy trial does not beat a row known to be better."""
    portfolio = Portfolio(table, seed=0)
    for row in range(0, 40, 2):
        portfolio.note(Tried(row, 0.0, 0.01))
    portfolio.note(Tried(1, -0.2, 0.01))
    portfolio.note(Tried(3, -0.25, 0.5))
    assert portfolio.incumbent()[0] == 1


def test_infeasible_rows_are_no_incumbent(table):
    """The fastest one that misses a limit is not what others must beat."""
    portfolio = Portfolio(table, seed=0)
    portfolio.note(Tried(0, -1.0, label="unfaithful"))
    portfolio.note(Tried(9, 0.5))
    assert portfolio.incumbent()[0] == 9


def test_search_goes_on_without_a_feasible_trial(make_searcher, truth):
    """While all trials miss their limits, suggestions still come."""
    assert len(run(make_searcher(), truth, 12, label=lambda _row: "infeasible")) == 12


def test_search_goes_on_when_all_fail(make_searcher, table):
    """While all trials fail, suggestions come until causes that came twice have closed the space."""
    searcher = make_searcher()
    for number in range(len(table)):
        found = searcher.next()
        if found is None:
            break
        searcher.note(Tried(found[0], None, label="failed", cause=f"cause {number % 7}"))
    assert len(searcher.portfolio.trials.tried) > 7
    assert searcher.next() is None
    assert searcher.should_stop() is None or "likely" in searcher.should_stop()


def test_what_takes_too_long_is_left_out(make_searcher, truth, table):
    """With a few seconds left, only built artifacts are suggested."""
    searcher = make_searcher(is_built=False)
    searcher.costs.note(5, build_s=30.0, trial_s=2.0)
    rows = []
    for _ in range(6):
        found = searcher.next(left_s=10.0)
        assert found is not None
        rows.append(found[0])
        searcher.note(Tried(found[0], float(truth[found[0]])), trial_s=2.0)
    assert set(table.artifacts[rows].tolist()) == {int(table.artifacts[5])}


def test_disabled_backends_are_left_out(make_searcher, table):
    """A disabled backend's rows are neither screened nor searched."""
    searcher = make_searcher()
    alpha = [row for row, point in enumerate(table.points) if point["backend"] == "alpha"]
    code = int(table.codes[alpha[0], 0])
    for _ in range(20):
        row, _ = searcher.next(disabled=[code])
        assert row not in alpha
        searcher.note(Tried(row, 0.0), trial_s=1.0)


def test_unbuilt_artifacts_cost_their_build(table):
    """A row whose artifact is not built is expected to take the build on top."""
    costs = Costs(table)
    costs.note(0, build_s=0.0, trial_s=4.0)
    seconds = costs.by_row()
    same = table.artifacts == table.artifacts[0]
    assert seconds[same] == pytest.approx(np.full(same.sum(), 4.0))
    assert seconds[~same].min() == pytest.approx(4.0 + BUILD_S)


def test_builds_are_learned(table):
    """Seen builds replace what was assumed."""
    costs = Costs(table)
    costs.note(0, build_s=60.0, trial_s=4.0)
    assert costs.by_row().max() == pytest.approx(64.0)


def test_expected_improvement_has_its_closed_form():
    """At the threshold it is sd times the normal density at 0; far below it is the gap; it is never negative."""
    posterior = Posterior(np.array([0.0, -5.0, 50.0]), np.array([1.0, 0.1, 0.1]))
    assert expected_improvement(posterior, 0.0) == pytest.approx([0.39894228, 5.0, 0.0], abs=1e-8)


def test_stops_when_nothing_is_likely_to_gain(make_searcher, truth):
    """On a smooth space the rule ends the search before the space ends, within 1% of the best."""
    searcher = make_searcher()
    for _ in range(len(truth)):
        row, _ = searcher.next()
        searcher.note(Tried(row, float(truth[row]), 0.005), trial_s=4.0)
        if searcher.should_stop():
            break
    assert len(searcher.portfolio.trials.tried) < len(truth) - 10
    assert truth[searcher.portfolio.incumbent()[0]] < truth.min() + 0.011


def test_does_not_stop_early(make_searcher):
    """Under 20 trials the rule says nothing, however sure the model is."""
    searcher = make_searcher()
    for _ in range(19):
        row, _ = searcher.next()
        searcher.note(Tried(row, 0.0, 0.001), trial_s=4.0)
        assert searcher.should_stop() is None


def test_asking_twice_counts_once(table):
    """The rule wants five trials in a row, not five questions."""
    portfolio, rule = Portfolio(table, seed=0), StopRule()
    for row in range(0, 80, 2):
        portfolio.note(Tried(row, 0.0, 0.001))
    for _ in range(10):
        assert rule.reason(portfolio) is None


def test_a_closed_space_cannot_gain(table):
    """Where every row is tried the chance is 0."""
    portfolio = Portfolio(table, seed=0)
    for row in range(len(table)):
        portfolio.note(Tried(row, 0.0))
    assert chance_of_gain(portfolio) == 0.0


def test_without_an_incumbent_everything_may_gain(table):
    """While nothing is feasible there is no reason to stop."""
    portfolio = Portfolio(table, seed=0)
    portfolio.note(Tried(0, 0.0, label="infeasible"))
    assert chance_of_gain(portfolio) == 1.0
