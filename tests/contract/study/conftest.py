"""A small real space of two engines, and records of trials in it."""

import pytest

from tuner.space.loading import load_space
from tuner.study.optuna_study import TrialBook, sampler_of
from tuner.study.suggesting import Suggester

CONSTRAINTS = ("fidelity.rel_error_max<=0.02",)
SPACE = """
schema = "tuner.space/1"
backend = "{name}"

[session.threads]
kind = "integer"
min = 1
max = {threads}
default = 1

[session.spin]
kind = "choice"
values = [true, false]
default = true
when = "session.threads > 1"
"""


@pytest.fixture
def make_space(tmp_path):
    """Return a function that resolves a space with the engines and thread counts given."""

    def make(**threads):
        files = []
        for name, most in threads.items():
            file = tmp_path / f"{name}.toml"
            file.write_text(SPACE.format(name=name, threads=most))
            files.append(file)
        return load_space(files).resolve({}, {}, {})

    return make


@pytest.fixture
def space(make_space):
    """Return a space of eight points: up to three threads of alpha, up to two of beta."""
    return make_space(alpha=3, beta=2)


@pytest.fixture
def make_book(tmp_path):
    """Return a function that opens the Optuna study of a space, by default in the directory ``study``."""
    books = []

    def make(space, *, storage=None, sampler="auto", **options):
        place = tmp_path / "study"
        place.mkdir(exist_ok=True)
        book = TrialBook(
            place, storage, space, sampler=sampler_of(sampler, 0, n_seeds=2), constraints=CONSTRAINTS, **options
        )
        books.append(book)
        return book

    yield make
    for book in books:
        book.close()


@pytest.fixture
def make_suggester(make_book):
    """Return a function that makes a suggester, its Optuna study in memory and told of what the records hold."""

    def make(space, *, records=(), sampler="auto", storage="sqlite://"):
        book = make_book(space, sampler=sampler, storage=storage)
        book.rebuild(list(records))
        return Suggester(book, space, seed=0, records=list(records), sampler=sampler)

    return make
