"""What a progress line says of a measurement that has no figure of the target yet."""

import math
import types

import pytest

from tuner.records.config import Config
from tuner.records.measurement import Failure, Latency, Measurement
from tuner.study.objective import parse_objective
from tuner.study.store import TrialRecord
from tuner.tuning.search import say_trial
from tuner.tuning.session import TuningSession


@pytest.fixture
def told():
    """Return a function that gives the text and the data of a trial's line, with p99 as the target."""

    def tell(**fields):
        said = []
        session = types.SimpleNamespace(
            plan=types.SimpleNamespace(objective=parse_objective("p99")),
            anchor=types.SimpleNamespace(incumbent=None),
            say=lambda kind, text, **data: said.append((kind, text, data)),
        )
        session.describe = lambda measurement: TuningSession.describe(session, measurement)
        say_trial(session, TrialRecord(number=7, purpose="search", config=Config(backend="fake"), **fields))
        ((kind, text, data),) = said
        assert kind == "trial"
        return text, data

    return tell


def test_trial_too_short_for_the_target(told):
    """The median is shown beside the target that is not known, and the ratio is one of times, not its logarithm."""
    short = Measurement(latency_s=Latency(p50=0.002, n=20))
    text, data = told(state="measured", value=math.log(0.5), measurement=short)
    assert text.endswith("p50 2 ms, latency_s.p99 not known yet")
    assert data["ratio_to_baseline"] == pytest.approx(0.5)


def test_trial_with_the_target(told):
    """A figure that is known stands alone."""
    text, _ = told(state="measured", value=0.0, measurement=Measurement(latency_s=Latency(p50=0.002, p99=0.003)))
    assert text.endswith(": 3 ms")


def test_failed_trial_has_no_ratio(told):
    """A failure is no trial as fast as the baseline."""
    failure = Failure(stage="load", kind="error", message="no")
    assert told(state="failed", value=0.0, failure=failure)[1]["ratio_to_baseline"] is None
