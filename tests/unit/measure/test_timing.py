"""Warm-up and blocks on virtual time."""

import pytest

from tuner.measure.timing import run_block, warm_up


def warm(calls, *, shapes=(0,), cap_s=10.0, quick_limit_s=None):
    """Warm up with the calls' own clock."""
    return warm_up(calls, shapes, cap_s=cap_s, quick_limit_s=quick_limit_s, clock_ns=calls.clock_ns)


def test_steady_calls_are_flat(timed_calls):
    """Equal calls end the warm-up after three windows."""
    warming = warm(timed_calls(lambda _n, _i: 0.005))
    assert (warming.kind, len(warming.windows_s)) == ("flat", 3)
    assert warming.call_s == pytest.approx(0.005)


def test_first_call_is_recorded_apart(timed_calls):
    """A compiling first call is neither a warm call nor part of a window."""
    warming = warm(timed_calls(lambda n, _i: 2.0 if n == 0 else 0.005))
    assert warming.first_call_s == pytest.approx(2.0)
    assert warming.fastest_s == pytest.approx(0.005)
    assert warming.kind == "flat"


def test_every_shape_is_called_once_before_windows(timed_calls):
    """The first calls visit the first batch of every distinct shape."""
    calls = timed_calls(lambda _n, i: 0.5 if i == 0 else 0.001 * (1 + i))
    warming = warm(calls, shapes=(0, 3, 5))
    assert calls.positions[:3] == [0, 3, 5]
    assert warming.n_shapes == 3


def test_calls_that_get_faster_are_warmup(timed_calls):
    """A cache that fills makes the first windows slower than the last."""
    warming = warm(timed_calls(lambda n, _i: 0.005 + 0.01 * 0.98**n))
    assert warming.kind == "warmup"
    assert warming.call_s < 1.1 * 0.005


def test_calls_that_get_slower_are_slowdown(timed_calls):
    """Throttling after a while makes an early window the fastest."""
    warming = warm(timed_calls(lambda n, _i: 0.005 if n < 60 else 0.007))
    assert warming.kind in {"flat", "slowdown"}
    slow = warm(timed_calls(lambda n, _i: 0.005 * min(1.5, 1 + n / 200)))
    assert slow.kind == "slowdown"


def test_wandering_medians_are_no_steady_state(timed_calls):
    """Windows that never agree twice in a row reach the cap."""
    warming = warm(timed_calls(lambda n, _i: 0.005 * (1 + (n // 50) % 2)), cap_s=3.0)
    assert warming.kind == "no_steady"
    assert warming.wall_s == pytest.approx(3.0, abs=0.3)


def test_slow_drift_within_tolerance_is_not_steady(timed_calls):
    """Four medians falling in a row are still a warm-up, however little they fall."""
    warming = warm(timed_calls(lambda n, _i: (0.03 if n < 14 else 0.02) * 0.9995**n))
    assert len(warming.windows_s) > 4


def test_slow_calls_that_fill_the_cap_are_capped(timed_calls):
    """Calls of 0.4 s need 9.6 s for three windows; that is no lack of steadiness."""
    warming = warm(timed_calls(lambda n, _i: 0.4 + 0.1 * (n % 7 == 0)), cap_s=9.0)
    assert warming.kind == "capped"


def test_half_second_calls_get_two_warm_calls(timed_calls):
    """Protocol 4: call of 0.5 s and more."""
    calls = timed_calls(lambda _n, _i: 0.6)
    warming = warm(calls)
    assert (len(calls.positions), warming.kind, warming.call_s) == (3, "capped", pytest.approx(0.6))


def test_five_second_calls_get_one_warm_call(timed_calls):
    """Protocol 4: call of 5 s and more."""
    calls = timed_calls(lambda _n, _i: 5.0)
    assert warm(calls).calls == 2


def test_dominated_stops_after_three_warm_calls(timed_calls):
    """The fastest of three warm calls is above the limit: no window is spent on it."""
    calls = timed_calls(lambda _n, _i: 0.03)
    warming = warm(calls, quick_limit_s=0.02)
    assert (warming.kind, len(calls.positions), warming.windows_s) == ("dominated", 4, ())


def test_one_lucky_call_is_not_dominated(timed_calls):
    """The fastest of the three decides: two disturbed calls refuse nobody."""
    calls = timed_calls(lambda n, _i: 0.03 if n < 3 else 0.01)
    assert warm(calls, quick_limit_s=0.02).kind != "dominated"


def test_mixed_shapes_are_no_drift(timed_calls):
    """Windows start at position 0 and compare the calls they share."""
    warming = warm(timed_calls(lambda _n, i: 0.002 * (1 + i % 16)), shapes=tuple(range(16)))
    assert (warming.kind, len(warming.windows_s)) == ("flat", 3)


def block(calls, n, *, discard_calls=3, discard_s=0.05):
    """Run a block with the calls' own clock."""
    return run_block(
        calls, n, discard_calls=discard_calls, discard_s=discard_s, clock_ns=calls.clock_ns, cpu_clock_ns=calls.clock_ns
    )


def test_block_keeps_every_call(timed_calls):
    """A spike stays where it happened."""
    calls = timed_calls(lambda n, _i: 0.5 if n == 7 else 0.02)
    timings = block(calls, 10)
    assert timings.latencies_s.index(max(timings.latencies_s)) == 4
    assert len(timings.latencies_s) == 10
    assert timings.wall_s == pytest.approx(sum(timings.latencies_s))


def test_block_discards_the_longer_of_calls_and_time(timed_calls):
    """Max(3 calls, 50 ms): twenty calls of 2.5 ms, three of 20 ms."""
    assert block(timed_calls(lambda _n, _i: 0.0025), 10).discarded == 20
    assert block(timed_calls(lambda _n, _i: 0.02), 10).discarded == 3


def test_block_starts_at_position_zero(timed_calls):
    """Both arms see the same batches in the same order."""
    calls = timed_calls(lambda _n, _i: 0.02)
    block(calls, 4)
    assert calls.positions == [0, 1, 2, 0, 1, 2, 3]


def test_block_without_discard_runs_only_timed_calls(timed_calls):
    """Models of 5 s a call are timed once, and nothing is thrown away."""
    calls = timed_calls(lambda _n, _i: 6.0)
    assert block(calls, 1, discard_calls=0, discard_s=0.0).discarded == 0
    assert len(calls.positions) == 1


def test_cpu_time_is_of_the_timed_calls(timed_calls):
    """Discarded calls do not count."""
    assert block(timed_calls(lambda _n, _i: 0.02), 10).cpu_s == pytest.approx(0.2)


def test_several_callers_share_a_block():
    """Three threads of four calls each for ten calls asked."""
    timings = run_block(lambda _position: None, 10, discard_calls=0, discard_s=0.0, callers=3)
    assert len(timings.latencies_s) == 12


def test_scheduled_arrivals_count_waiting(timed_calls):
    """Calls of 20 ms every 10 ms: the fifth has waited 40 ms."""
    calls = timed_calls(lambda _n, _i: 0.02)
    timings = run_block(
        calls,
        5,
        discard_calls=0,
        discard_s=0.0,
        arrivals_s=[0.0, 0.01, 0.02, 0.03, 0.04],
        clock_ns=calls.clock_ns,
        cpu_clock_ns=calls.clock_ns,
        sleep=calls.sleep,
    )
    assert timings.latencies_s[4] == pytest.approx(0.06)
