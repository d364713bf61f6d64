"""Quantiles, their intervals and least samples, against published tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.measure.quantiles import (
    early_stop_n,
    early_stop_rank,
    harrell_davis,
    latency_summary,
    least_n,
    order_interval,
    quantile,
    upper_bound,
)


@pytest.mark.parametrize(
    ("n", "p", "ranks"),
    [(100, 0.5, (40, 61)), (100, 0.9, (84, 96)), (100, 0.95, (90, 100)), (20, 0.5, (6, 15)), (6, 0.5, (1, 6))],
)
def test_order_interval(n, p, ranks):
    """Ranks of the distribution-free 95% interval."""
    assert order_interval(n, p) == ranks


def test_order_interval_needs_six_for_the_median():
    """Five values cannot hold the median with 95%."""
    assert order_interval(5, 0.5) is None


@pytest.mark.parametrize(("p", "at95", "at99"), [(0.5, 5, 7), (0.9, 29, 44), (0.95, 59, 90), (0.99, 299, 459)])
def test_least_n(p, at95, at99):
    """Least samples for a finite upper bound at 95% and 99%."""
    assert (least_n(p), least_n(p, 0.01)) == (at95, at99)


def test_early_stopping_of_mlperf():
    """64 queries for p90, 662 for p99, at 99% confidence."""
    assert (early_stop_n(0.9), early_stop_n(0.99)) == (64, 662)
    assert early_stop_rank(63, 0.9) is None


def test_quantile_is_definition_seven():
    """Linear interpolation of (n - 1)p, as numpy's default."""
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.9) == pytest.approx(3.7)


@pytest.mark.parametrize("p", [0.5, 0.9, 0.99])
def test_harrell_davis_equals_scipy(p):
    """The weights are those of hdquantiles."""
    from scipy.stats.mstats import hdquantiles

    values = np.random.default_rng(1).lognormal(size=70)
    assert harrell_davis(values, p) == pytest.approx(float(hdquantiles(values, [p])[0]))


def test_harrell_davis_has_less_variance():
    """The reason to use it for d_k of tail targets (not so under heavy tails and few calls)."""
    samples = np.random.default_rng(2).normal(10, 1, size=(1000, 300))
    smooth = [harrell_davis(row, 0.9) for row in samples]
    single = [quantile(row, 0.9) for row in samples]
    assert np.var(smooth) < np.var(single)


def test_upper_bound_needs_its_samples():
    """299 samples bound p99 by their largest; 298 do not."""
    values = np.arange(299.0)
    assert upper_bound(values, 0.99) == 298.0
    assert upper_bound(values[:298], 0.99) is None


def test_intervals_cover():
    """The p90 interval of 100 values holds the true quantile in about 95% of samples."""
    low, high = order_interval(100, 0.9)
    samples = np.sort(np.random.default_rng(3).random((4000, 100)), axis=1)
    covered = np.mean((samples[:, low - 1] <= 0.9) & (samples[:, high - 1] >= 0.9))
    assert 0.94 < covered < 0.98


def test_p99_is_null_under_299():
    """A figure that cannot be known is null."""
    assert latency_summary([[0.01] * 298]).p99 is None
    assert latency_summary([[0.01] * 149, [0.01] * 150]).p99 == pytest.approx(0.01)


def test_no_calls_no_figures():
    """Nothing measured: nulls and n = 0."""
    assert latency_summary([]).model_dump() == latency_summary([[]]).model_dump()
    assert latency_summary([]).n == 0


def test_interval_is_given_where_both_ranks_exist():
    """Twenty calls have an interval for p50 and no p90 at all."""
    latency = latency_summary([[float(i) for i in range(1, 21)]])
    assert latency.ci95 == {"p50": (6.0, 15.0)}
    assert latency.p90 is None


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=400))
def test_percentiles_are_ordered(values):
    """Whatever was measured: min, p50, p90, p95, p99 rise, as far as they are known."""
    latency = latency_summary([values])
    known = [v for v in (latency.min, latency.p50, latency.p90, latency.p95, latency.p99) if v is not None]
    assert known == sorted(known)
