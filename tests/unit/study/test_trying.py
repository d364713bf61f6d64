"""What trials rule out, and how likely others are to succeed."""

import math

import numpy as np
import pytest

from tuner.records.config import Config
from tuner.records.measurement import Failure
from tuner.study.encoding import PointTable
from tuner.study.store import TrialRecord
from tuner.study.trying import PROCESS_SD, Trials, Tried, noise_of, tried_of


@pytest.fixture
def table(engine_space):
    """Return the table of a space with artifacts and precisions."""
    return PointTable(engine_space, engine_space.enumerate())


@pytest.fixture
def rows(table):
    """Return a function that finds the rows with given values."""

    def find(**values):
        wanted = {name.replace("__", "."): value for name, value in values.items()}
        return [row for row, point in enumerate(table.points) if wanted.items() <= point.items()]

    return find


def fail(row, cause="crash boom"):
    """Return a failed trial."""
    return Tried(row, None, label="failed", cause=cause)


def noted(table, *tried):
    """Return trials."""
    trials = Trials(table)
    for item in tried:
        trials.note(item)
    return trials


def open_share(trials, rows):
    """Return the share of some rows that may still be tried."""
    return float(np.mean(trials.open_rows()[rows]))


def record(state="measured", value=0.1, **fields):
    """Return a record."""
    return TrialRecord(number=1, purpose="search", config=Config(backend="alpha"), state=state, value=value, **fields)


def test_tried_rows_are_closed(table):
    """Nothing is tried twice."""
    assert not noted(table, Tried(3, 0.0)).open_rows()[3]


def test_a_numerics_key_that_missed_its_limit_is_closed(table, rows):
    """Fidelity holds for all points with the same outputs, and only for those."""
    bad = rows(backend="alpha", artifact__chain="fp32", session__precision="bfloat16")
    trials = noted(table, Tried(bad[0], -1.0, label="unfaithful"))
    assert open_share(trials, bad) == 0
    assert open_share(trials, rows(backend="alpha", artifact__chain="fp32", session__precision="float32")) == 1


def test_slow_artifacts_are_dropped(table, rows):
    """More than 2.5 times the best is beyond what other settings recover."""
    slow, fast = rows(backend="alpha", artifact__chain="fp32"), rows(backend="beta", artifact__chain="fp32")
    cell = rows(backend="alpha", artifact__chain="fp32", session__precision="float32")
    trials = noted(table, Tried(fast[0], 0.0), Tried(cell[0], math.log(2.6)))
    assert open_share(trials, cell) == 0
    assert open_share(trials, slow) > 0


def test_artifacts_within_two_and_a_half_times_stay(table, rows):
    """2.4 times the best is not dropped."""
    cell = rows(backend="alpha", artifact__chain="fp32", session__precision="float32")
    trials = noted(table, Tried(rows(backend="beta")[0], 0.0), Tried(cell[0], math.log(2.4)))
    assert open_share(trials, cell[1:]) == 1


def test_dropped_artifacts_can_be_asked_for(table, rows):
    """Where nothing else is left, they are tried after all."""
    cell = rows(backend="alpha", artifact__chain="fp32", session__precision="float32")
    trials = noted(table, Tried(rows(backend="beta")[0], 0.0), Tried(cell[0], math.log(2.6)))
    assert trials.open_rows(with_slow=True)[cell[1:]].all()


def test_one_failure_closes_only_its_row(table, rows):
    """A single failure proves nothing about others."""
    trials = noted(table, fail(rows(backend="alpha")[0]))
    assert np.count_nonzero(~trials.open_rows()) == 1


def test_two_failures_of_an_artifact_close_it(table, rows):
    """Whatever the messages, an artifact that fails twice and never worked is left alone."""
    int8 = rows(backend="alpha", artifact__chain="int8", artifact__quantize__per_channel=True)
    trials = noted(table, fail(int8[0], "crash a"), fail(int8[5], "timeout b"))
    assert open_share(trials, int8) == 0
    assert open_share(trials, rows(backend="alpha", artifact__chain="fp32")) == 1


def test_two_failures_with_one_message_close_what_they_share(table, rows):
    """What both have and no success has is the cause."""
    bad = rows(backend="alpha", session__precision="bfloat16")
    fp32 = rows(backend="alpha", artifact__chain="fp32", session__precision="bfloat16", session__threads=2)
    int8 = rows(backend="alpha", artifact__chain="int8", session__precision="bfloat16", session__threads=4)
    good = [
        Tried(rows(backend="alpha", artifact__chain=chain, session__precision="float32", session__threads=n)[0], 0.0)
        for chain in ("fp32", "int8")
        for n in (2, 4)
    ]
    trials = noted(table, *good, fail(fp32[0]), fail(int8[1]))
    assert open_share(trials, bad) == 0
    assert open_share(trials, rows(backend="beta")) == 1
    assert open_share(trials, rows(backend="alpha", session__precision="float32")) > 0.8


def test_failures_with_different_messages_share_no_cause(table, rows):
    """Two different messages on two artifacts close nothing."""
    fp32 = rows(backend="alpha", artifact__chain="fp32")[0]
    int8 = rows(backend="alpha", artifact__chain="int8")[0]
    assert np.count_nonzero(~noted(table, fail(fp32, "a"), fail(int8, "b")).open_rows()) == 2


def test_everything_failing_leaves_no_crash(table):
    """When every config fails, rows run out without an error."""
    trials = Trials(table)
    for row in range(len(table)):
        trials.note(fail(row, f"crash {row}"))
    assert not trials.open_rows().any()
    assert trials.best_value() is None
    assert trials.feasibility().max() < 0.5


def test_numbers_do_not_make_causes_differ():
    """Process ids and addresses in a message are not its cause."""
    causes = {
        tried_of(
            record("failed", None, failure=Failure(stage="load", kind="crash", message=f"pid {pid} at 0x{pid:x}")), 0
        ).cause
        for pid in (1234, 99)
    }
    assert len(causes) == 1


@pytest.mark.parametrize("state", ["measured", "pruned"])
def test_no_value_is_a_failure(state):
    """A record without a figure is never taken for a good one."""
    assert tried_of(record(state, None), 0).label == "failed"


def test_fidelity_is_told_from_other_limits():
    """Only fidelity holds for a whole numerics key."""
    assert tried_of(record(violations={"fidelity.cosine_min>=0.99": 0.1}), 0).label == "unfaithful"
    assert tried_of(record(violations={"peak_rss_bytes<=1e9": 0.1}), 0).label == "infeasible"
    assert tried_of(record(violations={"peak_rss_bytes<=1e9": 0.0}), 0).label == "feasible"


def test_pruned_trials_are_less_sure():
    """An estimate of a trial that was stopped early has the larger spread, and is not whole."""
    pruned = tried_of(record("pruned", pair_sd=0.001), 0)
    assert pruned.sd > tried_of(record(pair_sd=0.001), 0).sd
    assert not pruned.is_whole


def test_pairs_that_agree_by_chance_are_not_the_surest():
    """The spread of two block pairs is drawn towards that of all trials; estimates keep their own."""
    tried = [tried_of(record(pair_sd=pair_sd), 0) for pair_sd in (0.0, 0.05, 0.1)]
    lucky, middle, wild = noise_of(tried)
    assert PROCESS_SD**2 + 0.05**2 / 2 < wild < 3 * lucky
    assert lucky < middle < wild
    assert noise_of([*tried, tried_of(record("pruned", pair_sd=0.001), 0)])[-1] == pytest.approx(0.08**2)


def test_noise_of_one_trial_is_its_own():
    """The process and the mean of its pairs, which are doubted: most pairs look calmer than they are."""
    (found,) = noise_of([tried_of(record(pair_sd=0.04), 0)])
    assert PROCESS_SD**2 + 0.04**2 / 2 < found < PROCESS_SD**2 + 0.04**2


def test_one_wild_trial_leaves_the_others_sure():
    """The usual spread is that of the median."""
    calm = [tried_of(record(pair_sd=0.02), 0)] * 9
    wild = tried_of(record(pair_sd=0.8), 0)
    found = noise_of([*calm, wild])
    assert found[0] == pytest.approx(noise_of(calm)[0])
    assert found[-1] > 0.1


def test_misses_make_their_likes_less_likely(table, rows):
    """Unfaithful int8 of one engine lowers the chance of unknown int8, not of outputs known to be faithful."""
    int8 = rows(artifact__chain="int8")
    known = rows(backend="alpha", artifact__chain="fp32", session__precision="float32")
    trials = noted(table, Tried(int8[0], 0.0, label="unfaithful"), Tried(known[0], 0.0))
    chance = trials.feasibility()
    assert chance[rows(backend="beta", artifact__chain="int8")].max() < 0.5
    assert chance[known].min() == 1.0


def test_infeasible_only(table):
    """Where nothing is feasible there is no best value."""
    trials = noted(table, Tried(0, -1.0, label="infeasible"), Tried(1, -2.0, label="unfaithful"))
    assert trials.best_value() is None
