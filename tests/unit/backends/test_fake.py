"""The backend without an engine."""

import itertools

import numpy as np
import pytest

from tuner.backends.base import Context, Unsupported
from tuner.backends.fake import Fake
from tuner.errors import UsageError
from tuner.records.model import ModelFacts
from tuner.records.workload import Workload

BATCH = {"x": np.array([[1.0, 3.0], [5.0, 7.0]], np.float32)}


@pytest.fixture
def open_fake(tmp_path):
    """Return a function that opens a session with settings."""
    facts = ModelFacts(source="m", kind="onnx", path="/m", sha256="0", task="forward", weight_bytes=1)
    context = Context(model=facts, workload=Workload(task="forward"), cache_dir=str(tmp_path))
    fake = Fake()
    return lambda **asked: fake.open(tmp_path, fake.SessionSettings.model_validate(asked), context)


def test_output_is_the_mean_of_every_row(open_fake):
    """What a ReduceMean graph answers."""
    output = open_fake().run(BATCH)["output"]
    assert (output.tolist(), output.dtype.name) == ([2.0, 6.0], "float32")


def test_inputs_add_up(open_fake):
    """Scalars count for every row."""
    assert open_fake().run(BATCH | {"sr": np.array(10)})["output"].tolist() == [12.0, 16.0]


@pytest.mark.parametrize(
    ("mode", "is_wrong"),
    [
        ("wrong_output", lambda output: output.tolist() == [-3.0, -7.0]),
        ("nan_output", lambda output: np.isnan(output).all()),
        ("wrong_shape", lambda output: output.shape == (1, 2)),
    ],
)
def test_outputs_go_wrong_after_the_asked_calls(open_fake, mode, is_wrong):
    """The first calls are honest."""
    session = open_fake(mode=mode, after_calls=1)
    assert session.run(BATCH)["output"].tolist() == [2.0, 6.0]
    assert is_wrong(session.run(BATCH)["output"])


@pytest.mark.parametrize("stage", ["open", "run"])
@pytest.mark.parametrize(("mode", "error"), [("unsupported", Unsupported), ("error", ValueError)])
def test_failures_happen_where_asked(open_fake, stage, mode, error):
    """While opening or in a call."""
    with pytest.raises(error):
        open_fake(mode=mode, stage=stage).run(BATCH)


def test_lie_reads_back_another_thread_count(open_fake):
    """What is in force differs from what was asked."""
    assert open_fake(threads=2).effective()["threads"] == 2
    assert open_fake(threads=2, mode="lie").effective()["threads"] == 3


def test_print_floods_both_streams_and_goes_on(open_fake, capsys):
    """Lines that look like answers are among them."""
    assert open_fake(mode="print").run(BATCH)["output"].tolist() == [2.0, 6.0]
    streams = capsys.readouterr()
    assert all('"answer": "bye"' in text and len(text) > 1_000_000 for text in streams)


def test_waits_follow_threads_and_seed(open_fake, monkeypatch):
    """Threads shorten all but the serial share; noise is the same for the same seed."""
    waits = []
    monkeypatch.setattr("time.sleep", waits.append)
    for threads in (1, 2):
        open_fake(latency_us=1000, threads=threads).run(BATCH)
    assert waits == pytest.approx([1e-3, 0.55e-3])
    for _ in range(2):
        session = open_fake(latency_us=1000, noise=0.2)
        for _ in itertools.repeat(None, 2):
            session.run(BATCH)
    assert waits[2:4] == waits[4:6] != [1e-3, 1e-3]


@pytest.mark.parametrize("asked", ['{"mode": "explode"}', '{"threads": 0}', '{"latency_us": -1}', '{"color": 1}'])
def test_unknown_requests_are_refused(asked):
    """Modes and ranges are checked."""
    with pytest.raises(UsageError):
        Fake.SessionSettings.from_json(asked)
