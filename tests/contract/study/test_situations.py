"""What goes wrong around a search: engines and spaces that change, trials that fail or miss their limits."""

import pytest
from pydantic import ValidationError

from tuner.records.measurement import Effective, Measurement
from tuner.space.loading import load_space
from tuner.study.suggesting import Suggester

LIMIT = "fidelity.rel_error_max<=0.02"
QUANTIZED = """
schema = "tuner.space/1"
backend = "alpha"

[artifacts]
fp32 = []
int8 = ["quantize"]

[session.threads]
kind = "integer"
min = 1
max = 3
"""
QUANTIZE = """
schema = "tuner.space/1"
step = "quantize"

[artifact.quantize.per_channel]
kind = "choice"
values = [true, false]
numerics = true
"""


def drain(suggester, make_record, outcome, most=60):
    """Run suggestions until there is none; `outcome` gives the fields of a record by config."""
    records = []
    for number in range(1, most):
        suggestion = suggester.next()
        if suggestion is None:
            break
        fields = {"value": 0.0, **outcome(suggestion.config)}
        record = make_record(number, suggestion.config, fields.pop("value"), **fields)
        suggester.note(record)
        suggester.book.tell(suggestion.trial, record)
        records.append(record)
    return records


@pytest.fixture
def quantized(tmp_path):
    """Return a space with a quantized artifact in two variants."""
    files = [tmp_path / "alpha.toml", tmp_path / "quantize.toml"]
    for file, text in zip(files, (QUANTIZED, QUANTIZE), strict=True):
        file.write_text(text)
    return load_space(files).resolve({}, {}, {})


def test_every_config_fails(space, make_suggester, make_record):
    """The search ends by itself; nothing that failed is suggested again."""
    records = drain(make_suggester(space), make_record, lambda _: {"value": None})
    assert 0 < len(records) <= 6
    assert len({record.config.digest() for record in records}) == len(records)


def test_every_quantized_artifact_misses_the_limit(quantized, make_suggester, make_record):
    """Each variant is tried once, then no more of its points; all others still are."""

    def outcome(config):
        return {"violations": {LIMIT: 0.5 if config.artifact else -0.5}, "value": -1.0 if config.artifact else 0.0}

    configs = [record.config for record in drain(make_suggester(quantized), make_record, outcome)]
    assert sum(bool(config.artifact) for config in configs) == 2
    assert sum(not config.artifact for config in configs) == 3


def test_a_miss_by_speed_is_no_miss_of_fidelity(quantized, make_suggester, make_record):
    """A point over a memory limit says nothing for certain about others with the same outputs."""
    records = drain(make_suggester(quantized), make_record, lambda _: {"violations": {"peak_rss_bytes<=1": 0.5}})
    assert len(records) == len(quantized.enumerate())


def test_a_space_of_one_point(make_space, make_suggester, make_record):
    """Where only one configuration is valid, it is tried and the search ends."""
    assert len(drain(make_suggester(make_space(alpha=1)), make_record, lambda _: {})) == 1


def test_an_engine_uninstalled_between_runs(make_space, make_suggester, make_record):
    """Its records are passed over, the other engine's still count."""
    records = drain(make_suggester(make_space(alpha=2, beta=2)), make_record, lambda _: {})
    again = make_suggester(make_space(alpha=3), records=records)
    configs = [record.config for record in drain(again, make_record, lambda _: {})]
    assert {config.session["threads"] for config in configs} == {3}


def test_a_space_edited_between_runs(make_space, make_suggester, make_record):
    """Records of points that are gone are passed over, and what is new is tried."""
    records = drain(make_suggester(make_space(alpha=3)), make_record, lambda _: {})
    smaller = make_suggester(make_space(alpha=2), records=records)
    assert smaller.next() is None
    assert len(drain(make_suggester(make_space(alpha=4), records=records), make_record, lambda _: {})) == 2


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_no_figure_that_is_no_number_becomes_a_record(space, make_suggester, make_record, value):
    """NaN and infinities cannot be stored, so they can never be best."""
    config = make_suggester(space).next().config
    with pytest.raises(ValidationError):
        make_record(1, config, value)


def test_a_record_without_a_value_is_a_failure(space, make_suggester, make_record):
    """What ended without a usable latency is not tried again and never best."""
    suggester = make_suggester(space)
    config = suggester.next().config
    suggester.note(make_record(1, config, None))
    assert suggester.known(config).state == "failed"
    assert suggester.searcher.portfolio.incumbent() is None


def test_screening_asks_what_is_built(quantized, make_book):
    """What needs no build is screened first."""
    suggester = Suggester(make_book(quantized, storage="sqlite://"), quantized, seed=0, records=[])
    assert [bool(config.artifact) for config in suggester.screening()] == [False, True]


def test_no_time_for_a_build(quantized, make_book, make_record):
    """With seconds left, only what needs no build is suggested, and the space is not called exhausted."""
    suggester = Suggester(make_book(quantized, storage="sqlite://"), quantized, seed=0, records=[])
    configs = []
    while (suggestion := suggester.next(left_s=10.0)) is not None:
        configs.append(suggestion.config)
        record = make_record(len(configs), suggestion.config, 0.0, wall_s=4.0)
        suggester.note(record)
        suggester.book.tell(suggestion.trial, record)
    assert [config.artifact for config in configs] == [(), (), ()]
    assert not suggester.is_exhausted()


def measured_with(threads, unverified=()):
    """Return a measurement that read back a thread count."""
    return Measurement(effective=Effective(settings={"threads": threads}, unverified=unverified))


def test_what_was_read_back_is_not_tried_again(make_space, make_suggester, make_record):
    """Three threads that became two are the measurement of two."""
    space = make_space(alpha=3)
    suggester = make_suggester(space)
    three = space.to_config(space.complete({"backend": "alpha", "session.threads": 3}))
    two = space.to_config(space.complete({"backend": "alpha", "session.threads": 2}))
    suggester.note(make_record(1, three, -0.5, measurement=measured_with(2)))
    assert suggester.known(two).number == 1


@pytest.mark.parametrize("measurement", [measured_with(3), measured_with(2, ("threads",)), measured_with(77)])
def test_what_was_not_read_back_otherwise_is_not_merged(make_space, make_suggester, make_record, measurement):
    """Values in force as asked, unverified ones and ones that the space does not have make no other point known."""
    space = make_space(alpha=3)
    suggester = make_suggester(space)
    three = space.to_config(space.complete({"backend": "alpha", "session.threads": 3}))
    suggester.note(make_record(1, three, -0.5, measurement=measurement))
    known = [point for point in space.enumerate() if suggester.known(space.to_config(point))]
    assert [space.to_config(point) for point in known] == [three]
