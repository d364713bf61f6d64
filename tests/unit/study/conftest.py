"""Records of trials, and spaces with artifacts and precisions."""

import pytest

from tuner.records.measurement import Failure
from tuner.space.loading import load_space
from tuner.study.store import TrialRecord


@pytest.fixture
def make_record():
    """Return a function that makes the record of a trial: a value, or a failure where there is none."""

    def make(number, config, value=0.0, purpose="search", **fields):
        failure = Failure(stage="load", kind="crash", message="SIGSEGV: boom") if value is None else None
        state = "failed" if value is None else "measured"
        return TrialRecord(
            number=number, purpose=purpose, config=config, state=state, value=value, failure=failure, **fields
        )

    return make


ENGINE = """
schema = "tuner.space/1"
backend = "{name}"

[artifacts]
fp32 = ["export"]
int8 = ["export", "quantize"]

[session.precision]
kind = "choice"
values = ["float32", "bfloat16"]
numerics = true

[session.threads]
kind = "integer"
min = 1
max = 4
default = 4

[session.spin]
kind = "choice"
values = [true, false]
when = "session.threads > 1"

"""
STEPS = {
    "export": "",
    "quantize": '[artifact.quantize.per_channel]\nkind = "choice"\nvalues = [true, false]\nnumerics = true\n',
}


@pytest.fixture
def make_engine_space(tmp_path):
    """Return a function that resolves engines with artifacts, precisions and threads, and what is added to them."""

    def make(added="", names=("alpha", "beta")):
        files = []
        for name in names:
            files.append(tmp_path / f"{name}-engine.toml")
            files[-1].write_text(ENGINE.format(name=name) + added)
        for step, text in STEPS.items():
            files.append(tmp_path / f"{step}-step.toml")
            files[-1].write_text(f'schema = "tuner.space/1"\nstep = "{step}"\n{text}')
        return load_space(files).resolve({}, {}, {})

    return make


@pytest.fixture
def engine_space(make_engine_space):
    """Return a space of two engines, each with two artifact chains and two precisions."""
    return make_engine_space()
