"""Suggestions over a small space: screening first, no repeats, an end."""

from collections import Counter

import pytest


def value_of(config):
    """Return a value that prefers many threads of alpha."""
    return -0.1 * config.session["threads"] - (config.backend == "alpha")


def run_all(suggester, make_record, value=value_of, most=100):
    """Run every suggestion and return the records."""
    records = []
    while len(records) < most:
        suggestion = suggester.next()
        if suggestion is None:
            return records
        record = make_record(len(records) + 1, suggestion.config, value(suggestion.config), suggestion.purpose)
        suggester.note(record)
        suggester.book.tell(suggestion.trial, record)
        records.append(record)
    raise AssertionError(f"{most} suggestions and no end")


@pytest.mark.parametrize("sampler", ["auto", "brute"])
def test_exhausts_without_repeats(space, make_suggester, make_record, sampler):
    """Every point is tried exactly once, then there is nothing more, however many trials were wanted (case C54)."""
    records = run_all(make_suggester(space, sampler=sampler), make_record)
    tried = sorted(record.config.digest() for record in records)
    assert tried == sorted(space.to_config(point).digest() for point in space.enumerate())


def test_screening_comes_first(space, make_suggester, make_record):
    """One point of each engine is tried before the search begins."""
    records = run_all(make_suggester(space, sampler="brute"), make_record)
    assert [(record.config.backend, record.purpose) for record in records[:3]] == [
        ("alpha", "screen"),
        ("beta", "screen"),
        (records[2].config.backend, "search"),
    ]


def test_skipped_screening_is_left_to_the_search(space, make_suggester, make_record):
    """What is too dear to screen is not lost."""
    suggester = make_suggester(space, sampler="brute")
    suggester.skip_screening(suggester.screening()[0])
    assert len(run_all(suggester, make_record)) == len(space.enumerate())


def test_resumed_study_tries_the_rest(space, make_suggester, make_record):
    """A second run tries what the first has not, on the first's database."""
    first = make_suggester(space, storage=None)
    done = [first.next() for _ in range(4)]
    records = [make_record(index + 1, one.config, value_of(one.config)) for index, one in enumerate(done)]
    for one, record in zip(done, records, strict=True):
        first.note(record)
        first.book.tell(one.trial, record)
    second = make_suggester(space, records=records, storage=None)
    rest = run_all(second, make_record)
    assert {record.config.digest() for record in rest} & {record.config.digest() for record in records} == set()


def test_resumed_study_ends_where_one_run_would(space, make_suggester, make_record):
    """Both runs together exhaust the space."""
    records = run_all(make_suggester(space, sampler="brute"), make_record)[:4]
    rest = run_all(make_suggester(space, records=records, sampler="random"), make_record)
    assert len(records) + len(rest) == len(space.enumerate())


def test_three_failures_disable_an_engine(space, make_suggester, make_record):
    """After three failures in a row that engine is tried no more; the other is searched on (case C59)."""
    records = run_all(
        make_suggester(space, sampler="brute"),
        make_record,
        lambda config: None if config.backend == "beta" else value_of(config),
    )
    assert Counter(record.config.backend for record in records) == {"beta": 3, "alpha": 5}


def test_a_disabled_engine_is_told_once(space, make_suggester, make_record):
    """The notice names the engine and the last failure, once."""
    suggester = make_suggester(space, sampler="brute")
    for number, point in enumerate(space.enumerate()[-3:]):
        suggester.note(make_record(number, space.to_config(point), None))
    assert (suggester.newly_disabled(), suggester.newly_disabled()) == ([("beta", "SIGSEGV: boom")], [])


def test_a_success_between_failures_counts(space, make_suggester, make_record):
    """Failures that are not in a row disable nothing."""
    suggester = make_suggester(space)
    configs = [space.to_config(point) for point in space.enumerate() if point["backend"] == "beta"]
    for number, (config, value) in enumerate(zip(configs, [None, None, 0.1], strict=True)):
        suggester.note(make_record(number, config, value))
    assert suggester.disabled == {}


def test_all_engines_disabled_is_the_end(make_space, make_suggester, make_record):
    """When every engine fails three times, the study ends."""
    assert len(run_all(make_suggester(make_space(alpha=9), sampler="brute"), make_record, lambda _: None)) == 3


def test_known_config_is_returned(space, make_suggester, make_record):
    """What was measured is told instead of measured again."""
    config = space.to_config(space.enumerate()[0])
    record = make_record(1, config)
    assert make_suggester(space, records=[record]).known(config) == record
