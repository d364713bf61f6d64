"""Builds against the clock, in virtual time: what is compiled in a short budget, and what fits."""

import pytest

from tuner.space.loading import load_space
from tuner.study.optuna_study import TrialBook, sampler_of
from tuner.study.suggesting import Suggester

ENGINE = """
schema = "tuner.space/1"
backend = "alpha"

[artifacts]
eager = []
int8 = ["quantize"]
compiled = ["compile"]

[session.threads]
kind = "integer"
min = 1
max = 4
"""
STEPS = {
    "quantize": "",
    "compile": '[artifact.compile.shapes]\nkind = "choice"\nvalues = ["static", "dynamic", "both"]\n',
}
BUILD_S = {"eager": 0.0, "quantize": 5.0, "compile": 60.0}
TRIAL_S = 4.0


@pytest.fixture
def space(tmp_path):
    """Return a space with an artifact that needs no build, a quantized one and three compiled ones."""
    texts = {"alpha": ENGINE}
    texts |= {name: f'schema = "tuner.space/1"\nstep = "{name}"\n{text}' for name, text in STEPS.items()}
    for name, text in texts.items():
        (tmp_path / f"{name}.toml").write_text(text)
    return load_space(sorted(tmp_path.glob("*.toml"))).resolve({}, {}, {})


class Run:
    """A search until a budget of virtual seconds is spent; compiled code is twice as fast.

    Attributes:
        built: Digests of artifacts in the order of their builds.
        left_s: What is left of the budget, below zero if it was overrun.
    """

    def __init__(self, space, directory, make_record, *, budget_s, guess=BUILD_S, fails=(), **options):
        self.left_s = budget_s
        self.built, self.chains, self.seen = [], [], dict(guess)
        book = TrialBook(
            directory, "sqlite://", space, sampler=sampler_of("random", 0, n_seeds=3), constraints=("fidelity.x",)
        )
        self.suggester = Suggester(
            book,
            space,
            seed=0,
            records=[],
            build_s=self.expected_s,
            is_compiled=lambda config: config.chain() == "compile",
            **options,
        )
        while (found := self.suggester.next(self.left_s)) is not None and self.left_s > 0:
            config, step = found.config, found.config.chain()
            build_s = BUILD_S[step] if self.expected_s(config) else 0.0
            if build_s:
                self.built.append(config.artifact_digest())
                self.chains.append(step)
                self.seen[step] = build_s
            self.left_s -= build_s + TRIAL_S
            value = None if step in fails else -0.7 * (step == "compile") + 0.01 * config.session["threads"]
            fields = {"build_s": build_s, "wall_s": build_s + TRIAL_S} if value is not None else {"wall_s": TRIAL_S}
            record = make_record(len(self.built), config, value, found.purpose, **fields)
            self.suggester.note(record)
            self.suggester.book.tell(found.trial, record)
        book.close()

    def expected_s(self, config):
        """Return what a build is expected to take, learned from those seen."""
        if not config.artifact or config.artifact_digest() in self.built:
            return 0.0
        return self.seen[config.chain()]


@pytest.mark.parametrize("sampler", ["auto", "tpe", "random", "brute"])
def test_a_short_budget_compiles_once(space, tmp_path, make_record, sampler):
    """However promising compiled artifacts are, and whatever the sampler, only one of the three is built."""
    run = Run(space, tmp_path, make_record, budget_s=300.0, most_compiled=1, sampler=sampler)
    assert run.chains.count("compile") == 1


def test_a_compile_that_failed_counts(space, tmp_path, make_record):
    """The time of a build that failed is spent: no second one is tried."""
    run = Run(space, tmp_path, make_record, budget_s=300.0, most_compiled=1, fails=("compile",))
    assert run.chains.count("compile") == 1


def test_a_long_budget_compiles_what_pays(space, tmp_path, make_record):
    """Without the limit the other compiled artifacts are tried too."""
    assert Run(space, tmp_path, make_record, budget_s=900.0).chains.count("compile") == 3


@pytest.mark.parametrize("sampler", ["auto", "tpe", "random", "brute"])
def test_what_does_not_fit_is_not_compiled(space, tmp_path, make_record, sampler):
    """With less time left than the build is guessed to take, none is begun; the rest is searched."""
    run = Run(space, tmp_path, make_record, budget_s=50.0, most_compiled=1, sampler=sampler)
    assert run.chains == ["quantize"]


def test_builds_keep_the_budget(space, tmp_path, make_record):
    """Where the guesses are right the budget is never overrun by more than one trial."""
    runs = [Run(space, tmp_path, make_record, budget_s=budget_s) for budget_s in (40.0, 110.0)]
    assert all(run.left_s > -TRIAL_S for run in runs)


def test_a_wrong_guess_is_wrong_once(space, tmp_path, make_record):
    """A build guessed at 10 s that takes 60 s is not begun again where 60 s do not fit."""
    guess = {**BUILD_S, "compile": 10.0}
    assert Run(space, tmp_path, make_record, budget_s=120.0, guess=guess).chains.count("compile") == 1


def test_quicker_builds_are_screened_first(space, tmp_path, make_record):
    """Screening goes from what needs no build to what is built soonest."""
    guess = {**BUILD_S, "compile": 1.0}
    orders = [Run(space, tmp_path, make_record, budget_s=300.0, guess=one).chains[:2] for one in (BUILD_S, guess)]
    assert orders == [["quantize", "compile"], ["compile", "quantize"]]
