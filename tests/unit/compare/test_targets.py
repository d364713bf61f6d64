"""Every target as one cost, lower is better."""

import math

import pytest

from tuner.compare.playoff import run_playoff
from tuner.compare.targets import target_of
from tuner.errors import HostError, UsageError
from tuner.records.workload import Objective
from tuner.replay.script import SimModel

FAST = SimModel(0.05, open_s=4.0, first_call_s=1.0, rss_bytes=300, cpus_used=1.0)
SLOW = SimModel(0.10, open_s=2.0, first_call_s=2.0, rss_bytes=600, cpus_used=2.0)


@pytest.mark.parametrize(
    ("path", "ratio"),
    [
        ("latency_s.p50", 2.0),
        ("latency_s.p99", 2.0),
        ("latency_s.mean", 2.0),
        ("latency_s.min", 2.0),
        ("throughput_items_per_s", 2.0),
        ("cpu_s_per_item", 4.0),
        ("peak_rss_bytes", 2.0),
        ("load_s", 0.5),
        ("first_call_s", 2.0),
    ],
)
def test_speedup_is_above_one_where_better(bench, named, path, ratio):
    """Baseline over candidate, also for throughput, where more is better."""
    rig = bench({"fast": FAST, "slow": SLOW}, objective=Objective(target=path))
    outcome = run_playoff(named("fast"), named("slow"), rig)
    assert outcome.speedup.ratio == pytest.approx(ratio)


def test_an_unknown_path_is_a_usage_error():
    """The message names what can be compared."""
    with pytest.raises(UsageError, match=r"fidelity\.n cannot be compared"):
        target_of("fidelity.n")


@pytest.mark.parametrize(
    ("path", "is_tail"), [("latency_s.p50", False), ("latency_s.p90", True), ("latency_s.p99", True)]
)
def test_tails(path, is_tail):
    """Percentiles above the median."""
    assert target_of(path).is_tail is is_tail


def test_a_clock_too_coarse_for_the_calls_is_a_host_error(bench, named):
    """Zero latencies have no ratio, and the message says why."""
    rig = bench({"a": FAST, "b": SLOW}, objective=Objective(target="latency_s.p50"), clock_step_s=10.0)
    with pytest.raises(HostError, match="too coarse"):
        run_playoff(named("a"), named("b"), rig)


def test_tail_target_sees_what_the_median_hides(bench, named):
    """Five percent of calls twice as slow: p50 is equal, p99 is not."""
    models = {"a": SimModel(0.05), "b": SimModel(0.05, tail_share=0.05)}
    p99 = run_playoff(named("a"), named("b"), bench(models, objective=Objective(target="latency_s.p99")))
    p50 = run_playoff(named("a"), named("b"), bench(models))
    assert p99.verdict == "WIN"
    assert math.log(p50.speedup.ratio) == pytest.approx(0.0, abs=1e-6)
