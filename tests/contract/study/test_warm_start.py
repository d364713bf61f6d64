"""Points that an older result makes likely come before screening, each once."""

import pytest

from tuner.study.optuna_study import TrialBook, sampler_of
from tuner.study.suggesting import Suggester


@pytest.fixture
def make_warm(engine_space, tmp_path):
    """Return a function that makes a suggester with points to begin with, its Optuna study in memory."""
    books = []

    def make(points, *, sampler="auto", records=()):
        book = TrialBook(tmp_path, "sqlite://", engine_space, sampler=sampler_of(sampler, 0, n_seeds=2), constraints=())
        books.append(book)
        suggester = Suggester(book, engine_space, seed=0, records=list(records), sampler=sampler)
        suggester.begin_with(suggester.table.extend(points))
        return suggester

    yield make
    for book in books:
        book.close()


@pytest.mark.parametrize("sampler", ["auto", "tpe", "random", "brute"])
def test_in_the_order_given(engine_space, make_warm, sampler):
    """Whatever the sampler, these come first and count as screening."""
    points = [engine_space.enumerate()[index] for index in (4, 1, 6)]
    suggester = make_warm(points, sampler=sampler)
    found = [suggester.next() for _ in points]
    assert [one.point for one in found] == points
    assert {one.purpose for one in found} == {"screen"}


def test_what_is_known_is_left_out(engine_space, make_warm, make_record):
    """A point that this study has measured is not tried again."""
    points = engine_space.enumerate()[:2]
    records = [make_record(0, engine_space.to_config(points[0]))]
    assert make_warm(points, records=records).next().point == points[1]


def test_search_does_not_stop_before(engine_space, make_warm):
    """The search cannot be called done while such points wait."""
    assert make_warm(engine_space.enumerate()[:1]).should_stop() is None


def test_screening_follows(engine_space, make_warm):
    """Afterwards screening goes on, without what was suggested already."""
    seeds = engine_space.artifact_points()
    suggester = make_warm(seeds[:1], sampler="random")
    assert [suggester.next().point, suggester.next().point in seeds] == [seeds[0], True]
