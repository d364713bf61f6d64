"""Which parameters mattered, and which can go back to their defaults."""

import numpy as np
import pytest

from tuner.study.importance import importances, minimal_config


@pytest.fixture
def make_records(engine_space, make_record):
    """Return a function that makes records of every second point, valued by a function of the point."""

    def make(value, every=2):
        rng = np.random.default_rng(0)
        return [
            make_record(number, engine_space.to_config(point), value(point) + 0.003 * rng.normal(), pair_sd=0.005)
            for number, point in enumerate(engine_space.enumerate()[::every])
        ]

    return make


def by_threads(point):
    """Return a value that only threads decide."""
    return -0.5 * np.log(point["session.threads"])


def test_what_decides_comes_first(make_records, engine_space):
    """The only parameter with an effect has nearly all the importance."""
    found = importances(make_records(by_threads), engine_space)
    assert next(iter(found)) == "session.threads"
    assert found["session.threads"].percent > 80
    assert found["session.precision"].percent < 5


def test_shares_are_percentages(make_records, engine_space):
    """No share is negative, they add up to 100 at most, and each lies in its interval."""
    found = importances(
        make_records(lambda p: by_threads(p) + 0.2 * (p["session.precision"] == "float32")), engine_space
    )
    assert sum(item.percent for item in found.values()) <= 100 + 1e-6
    assert all(0 <= item.low <= item.percent <= item.high for item in found.values())


def test_a_second_effect_is_seen(make_records, engine_space):
    """Half as strong an effect has less, but clearly some importance."""
    found = importances(
        make_records(lambda p: by_threads(p) + 0.4 * (p["session.precision"] == "float32")), engine_space
    )
    assert found["session.threads"].percent > found["session.precision"].percent > 10


def test_few_trials_say_nothing(make_records, engine_space):
    """Under eight trials no percentages are made up."""
    assert importances(make_records(by_threads)[:7], engine_space) == {}


def test_failures_are_passed_over(make_records, make_record, engine_space):
    """Records without a value do not count."""
    records = make_records(by_threads)
    failed = make_record(999, records[0].config, None)
    assert importances([*records, failed], engine_space) == importances(records, engine_space)


def best_of(records):
    """Return the fastest config."""
    return min(records, key=lambda record: record.value).config


def test_idle_settings_go_back_to_their_defaults(make_engine_space, make_record):
    """A setting without effect returns to its default, one with an effect stays."""
    added = '[session.arena]\nkind = "choice"\nvalues = [false, true]\ndefault = true\n'
    space = make_engine_space(added, names=("alpha",))
    records = [
        make_record(number, space.to_config(point), abs(point["session.threads"] - 2) * 0.2, pair_sd=0.005)
        for number, point in enumerate(space.enumerate())
    ]
    best = next(
        record.config
        for record in records
        if record.config.session["threads"] == 2 and record.config.session["arena"] is False
    )
    proposed = minimal_config(records, space, best)
    assert proposed.session == {**best.session, "arena": True}


def test_nothing_to_take_back(make_records, engine_space):
    """Where all settings are at their defaults or matter, there is no proposal."""
    records = make_records(by_threads, every=1)
    assert best_of(records).session["threads"] == 4
    assert minimal_config(records, engine_space, best_of(records)) is None


def test_outputs_are_not_touched(make_engine_space, make_record):
    """What can change outputs stays, although its default is as fast."""
    added = '[session.level]\nkind = "choice"\nvalues = ["high", "low"]\ndefault = "low"\nnumerics = true\n'
    space = make_engine_space(added, names=("alpha",))
    records = [make_record(n, space.to_config(p), 0.0, pair_sd=0.005) for n, p in enumerate(space.enumerate())]
    best = next(r.config for r in records if r.config.session == {**r.config.session, "level": "high", "threads": 4})
    assert minimal_config(records, space, best) is None
