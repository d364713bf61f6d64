"""Recorded traces and what a search meets on them."""

import gzip
import math

import pytest

from tuner.errors import UsageError
from tuner.records.config import Config
from tuner.records.measurement import Failure
from tuner.replay.trace import Trace, TracedProcess, TraceHead, read_trace, write_trace
from tuner.replay.trace_course import Player

SPACE = """
schema = "tuner.space/1"
backend = "alpha"

[session.threads]
kind = "integer"
min = 1
max = "host.cpu_budget"
"""


def config(threads):
    """Return a point."""
    return Config(backend="alpha", session={"threads": threads})


@pytest.fixture
def trace():
    """Return a trace of four points: one measured thrice, one unfaithful, one that failed."""
    head = TraceHead(
        name="small",
        space_files={"alpha.toml": SPACE},
        facts={"host": {"cpu_budget": 4, "isa": ("avx2",)}},
        backends=("alpha",),
        space_sha256="0" * 64,
        n_points=4,
        baseline=config(1),
        target="latency_s.p50",
    )
    crash = Failure(stage="load", kind="crash", message="SIGSEGV")
    processes = (
        TracedProcess(config=config(1), ratios=(0.01, -0.01), value=0.0, open_s=2.0, measure_s=3.0),
        TracedProcess(config=config(2), ratios=(-0.5, -0.52), value=-0.51, open_s=2.0, measure_s=3.0, build_s=20.0),
        TracedProcess(config=config(3), value=-0.9, open_s=2.0, violations={"fidelity.cosine_min>=0.99": 0.2}),
        TracedProcess(config=config(4), failure=crash, open_s=1.0),
        TracedProcess(config=config(2), ratios=(-0.48, -0.5), value=-0.49, open_s=4.0, measure_s=3.0),
        TracedProcess(config=config(2), ratios=(-0.5, -0.5), value=-0.5, open_s=6.0, measure_s=3.0),
    )
    return Trace(head, processes)


def test_a_trace_survives_its_file(trace, tmp_path):
    """What is written is read back, and the same trace gives the same bytes."""
    write_trace(trace, tmp_path / "a.jsonl.gz")
    write_trace(read_trace(tmp_path / "a.jsonl.gz"), tmp_path / "b.jsonl.gz")
    assert read_trace(tmp_path / "a.jsonl.gz") == trace
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def test_a_line_cut_short_is_left_out(trace, tmp_path):
    """A recorder that was killed loses its last process only."""
    write_trace(trace, tmp_path / "whole.gz")
    text = gzip.decompress((tmp_path / "whole.gz").read_bytes())
    (tmp_path / "torn.gz").write_bytes(gzip.compress(text[:-20]))
    assert len(read_trace(tmp_path / "torn.gz").processes) == len(trace.processes) - 1


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip", gzip.compress(b'{"schema": "tuner.trace/9"}\n'), gzip.compress(b"")],
    ids=["empty", "no gzip", "another schema", "no line"],  # gzip writes the time into its bytes
)
def test_what_is_no_trace_is_refused(tmp_path, content):
    """Damaged files and other schemas are named, never half read."""
    (tmp_path / "x.gz").write_bytes(content)
    with pytest.raises(UsageError, match=r"x\.gz"):
        read_trace(tmp_path / "x.gz")


def test_the_space_travels_with_the_trace(trace):
    """The space is there again, with the facts of the host that was recorded on."""
    space = trace.space()
    assert [space.to_config(point) for point in space.enumerate()] == [config(n) for n in (1, 2, 3, 4)]


def test_the_truth_is_the_mean_of_processes(trace):
    """A point's time is that of all its processes, not of its luckiest."""
    assert trace.course().truth[1] == pytest.approx(-0.5)


def test_the_best_is_faithful(trace):
    """The fastest point that misses its limit is not the best."""
    course = trace.course()
    assert course.best == pytest.approx(-0.5)
    assert course.regret(2) == math.inf
    assert course.regret(0) == pytest.approx(math.exp(0.5) - 1)


def test_no_choice_is_the_baseline(trace):
    """A search that has nothing yet ships the baseline."""
    assert trace.course().regret(None) == pytest.approx(math.exp(0.5) - 1)


def test_costs_are_the_recorded_ones(trace):
    """Builds are taken from the process that saw one; opening is the middle one."""
    course = trace.course()
    assert course.build_s[1] == 20.0
    assert course.open_s[1] == 4.0


def test_playing_adds_up_the_clock(trace):
    """A build is paid once, a comparison of outputs once an artifact."""
    player = Player(trace.course(), seed=0)
    assert player.play(1).seconds == pytest.approx(20 + 4 + 3 + 2)
    assert player.play(1).seconds == pytest.approx(4 + 3)
    assert player.elapsed_s == pytest.approx(36)


def test_playing_a_failure_takes_its_time(trace):
    """A point that fails has no value and costs its start."""
    player = Player(trace.course(), seed=0)
    played = player.play(3)
    assert (played.value, played.failure, played.seconds) == (None, "crash: SIGSEGV", 1.0)


def test_one_failed_process_does_not_fail_a_point(trace):
    """A point that also worked is one that works."""
    crash = Failure(stage="spawn", kind="crash", message="once")
    more = Trace(trace.head, (*trace.processes, TracedProcess(config=config(2), failure=crash)))
    assert more.course().failure[1] == ""


def test_spread_of_block_pairs_is_not_counted_twice(trace):
    """Processes whose values differ as their own pairs do have no spread of their own."""
    noisy = tuple(
        TracedProcess(config=config(1), ratios=(value + 0.2, value - 0.2), value=value) for value in (-0.1, 0.0, 0.1)
    )
    course = Trace(trace.head, noisy).course()
    assert (course.process_sd, course.block_sds) == (0.01, pytest.approx([math.sqrt(0.08)] * 3))


def test_trials_are_as_calm_or_wild_as_recorded_ones(trace):
    """One of the recorded spreads is drawn: half of the trials are still where half of the processes were."""
    wild = TracedProcess(config=config(2), ratios=(-0.9, -0.1), value=-0.5)
    still = TracedProcess(config=config(1), ratios=(0.0, 0.0), value=0.0)
    course = Trace(trace.head, (still, wild)).course()
    spreads = [Player(course, seed=seed).play(0).pair_sd for seed in range(200)]
    assert 60 < sum(spread == 0.0 for spread in spreads) < 140
    assert max(spreads) > 0.5
