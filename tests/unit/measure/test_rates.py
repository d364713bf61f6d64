"""Latencies under load, on virtual time."""

import pytest

from tuner.measure.rates import (
    poisson_arrivals,
    queued_latencies,
    run_callers,
    run_open_loop,
    run_servers,
)


def test_poisson_has_its_rate():
    """Ten a second, and the same seed gives the same traffic."""
    arrivals = poisson_arrivals(10.0, 5000, seed=1)
    assert arrivals[-1] == pytest.approx(500.0, rel=0.05)
    assert arrivals == poisson_arrivals(10.0, 5000, seed=1)
    assert arrivals == sorted(arrivals)


def test_a_call_without_queue_takes_its_service_time():
    """Far apart arrivals do not wait."""
    assert queued_latencies([0.0, 10.0], [1.0, 2.0]).latencies_s == (1.0, 2.0)


def test_waiting_counts_from_the_scheduled_arrival():
    """Three calls at once, one caller: one, two and three seconds."""
    load = queued_latencies([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    assert load.latencies_s == (1.0, 2.0, 3.0)
    assert load.wall_s == 3.0


def test_more_callers_wait_less():
    """Three callers serve three calls at once."""
    assert queued_latencies([0.0] * 3, [1.0] * 3, callers=3).latencies_s == (1.0, 1.0, 1.0)


def test_open_loop_does_not_omit_a_stall(timed_calls):
    """One call of a second delays the nine that arrive meanwhile, and their latency says so."""
    calls = timed_calls(lambda n, _i: 1.0 if n == 0 else 0.01)
    load = run_open_loop(calls, [0.1 * i for i in range(10)], clock_ns=calls.clock_ns, sleep=calls.sleep)
    assert load.latencies_s[1] == pytest.approx(0.91)
    assert load.latencies_s[9] == pytest.approx(0.19)
    assert load.max_queue == 9


def test_open_loop_waits_for_arrivals(timed_calls):
    """Between calls time passes until the next arrival."""
    calls = timed_calls(lambda _n, _i: 0.01)
    load = run_open_loop(calls, [0.5, 1.0, 1.5], clock_ns=calls.clock_ns, sleep=calls.sleep)
    assert load.latencies_s == pytest.approx((0.01, 0.01, 0.01))
    assert load.wall_s == pytest.approx(1.01)


def test_open_loop_agrees_with_queueing(timed_calls):
    """The driver and Lindley's recursion see the same waits."""
    arrivals = poisson_arrivals(50.0, 200, seed=3)
    calls = timed_calls(lambda n, _i: 0.015 + 0.001 * (n % 5))
    load = run_open_loop(calls, arrivals, clock_ns=calls.clock_ns, sleep=calls.sleep)
    expected = queued_latencies(arrivals, [0.015 + 0.001 * (n % 5) for n in range(200)])
    assert load.latencies_s == pytest.approx(expected.latencies_s, abs=1e-6)


def test_callers_share_the_cycle():
    """Three callers of four calls run twelve different positions."""
    positions = []
    load = run_callers(positions.append, 3, 4)
    assert sorted(positions) == list(range(12))
    assert len(load.latencies_s) == 12


def test_an_error_in_a_caller_is_raised():
    """The thread's error reaches who asked."""

    def fail(_position):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_callers(fail, 2, 1)


def test_servers_take_every_arrival_once():
    """Three servers make each call of an open loop exactly once and report it in order of arrival."""
    made: list[int] = []
    load = run_servers(made.append, [0.0] * 20, 3)
    assert sorted(made) == list(range(20))
    assert len(load.latencies_s) == 20
    assert min(load.latencies_s) >= 0


def test_servers_pass_an_error_on():
    """A call that fails in a server's thread fails the traffic."""

    def fail(position: int) -> None:
        if position == 2:
            raise ValueError("two")

    with pytest.raises(ValueError, match="two"):
        run_servers(fail, [0.0] * 5, 2)
