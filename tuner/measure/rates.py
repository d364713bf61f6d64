"""Latencies under load: open loop from scheduled Poisson arrivals, closed loop of N callers; it decides nothing.

In the open loop a late start counts: the latency runs from the arrival that was scheduled, not from the moment the
worker got round to it (no coordinated omission; wrk2, MLPerf LoadGen's server scenario).
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

Call = Callable[[int], object]


@dataclass(frozen=True)
class Load:
    """Calls under load; seconds.

    Attributes:
        latencies_s: By call, in order of arrival (open loop) or of completion (closed loop).
        wall_s: From the first arrival or call to the last completion.
        max_queue: Most calls that had arrived and not begun.
    """

    latencies_s: tuple[float, ...]
    wall_s: float
    max_queue: int = 0

    @property
    def calls_per_s(self) -> float:
        """Return the throughput in calls."""
        return len(self.latencies_s) / self.wall_s if self.wall_s > 0 else 0.0


def poisson_arrivals(rate_per_s: float, n: int, seed: int) -> list[float]:
    """Return `n` arrival times in seconds from 0: exponential gaps of mean 1 / rate."""
    draws = random.Random(seed)  # noqa: S311 - traffic must repeat, not be secret
    times, now = [], 0.0
    for _ in range(n):
        now += draws.expovariate(rate_per_s)
        times.append(now)
    return times


def queued_latencies(arrivals_s: Sequence[float], service_s: Sequence[float], callers: int = 1) -> Load:
    """Return what first-come-first-served calls would have taken (Lindley's recursion for several servers).

    Args:
        arrivals_s: Scheduled arrivals, ascending.
        service_s: Seconds of every call once begun.
        callers: Calls that may run at once.
    """
    free = [0.0] * callers
    starts: list[float] = []
    ends: list[float] = []
    for arrival, service in zip(arrivals_s, service_s, strict=True):
        start = max(arrival, heappop(free))
        heappush(free, start + service)
        starts.append(start)
        ends.append(start + service)
    latencies = tuple(end - arrival for end, arrival in zip(ends, arrivals_s, strict=True))
    return Load(latencies, max(ends) - arrivals_s[0], _longest_queue(arrivals_s, starts))


def run_open_loop(
    call: Call,
    arrivals_s: Sequence[float],
    *,
    clock_ns: Callable[[], int] = time.perf_counter_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> Load:
    """Make one call per scheduled arrival, in this thread; a call that comes too late still counts from its arrival.

    Args:
        call: Runs batch `i` of the cycle.
        arrivals_s: Seconds from now, ascending.
        clock_ns: Monotonic nanoseconds.
        sleep: Waits.
    """
    zero = clock_ns()
    starts, latencies = [], []
    for position, arrival in enumerate(arrivals_s):
        early_s = arrival - (clock_ns() - zero) / 1e9
        if early_s > 0:
            sleep(early_s)
        starts.append((clock_ns() - zero) / 1e9)
        call(position)
        latencies.append((clock_ns() - zero) / 1e9 - arrival)
    wall_s = latencies[-1] + arrivals_s[-1] - arrivals_s[0]
    return Load(tuple(latencies), wall_s, _longest_queue(arrivals_s, starts))


def run_callers(
    call: Call, n_callers: int, calls_each: int, *, clock_ns: Callable[[], int] = time.perf_counter_ns
) -> Load:
    """Make calls from `n_callers` threads at once, each the next as soon as its last has ended.

    Args:
        call: Runs batch `i` of the cycle; must be safe to call from several threads.
        n_callers: Threads.
        calls_each: Calls of each thread.
        clock_ns: Monotonic nanoseconds.
    """
    spans: list[tuple[int, int]] = []
    errors: list[BaseException] = []
    gate = threading.Barrier(n_callers)

    def one_caller(number: int) -> None:
        try:
            gate.wait()
            for position in range(calls_each):
                began = clock_ns()
                call(number + position * n_callers)
                spans.append((began, clock_ns()))
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            errors.append(error)
            gate.abort()

    threads = [threading.Thread(target=one_caller, args=(number,), daemon=True) for number in range(n_callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next((error for error in errors if not isinstance(error, threading.BrokenBarrierError)), errors[0])
    latencies = tuple((ended - began) / 1e9 for began, ended in sorted(spans, key=lambda span: span[1]))
    wall_s = (max(ended for _, ended in spans) - min(began for began, _ in spans)) / 1e9
    return Load(latencies, wall_s)


def run_servers(
    call: Call,
    arrivals_s: Sequence[float],
    n_servers: int,
    *,
    clock_ns: Callable[[], int] = time.perf_counter_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> Load:
    """Serve scheduled arrivals, first come first served, from `n_servers` threads; latency from the arrival."""
    if n_servers == 1:
        return run_open_loop(call, arrivals_s, clock_ns=clock_ns, sleep=sleep)
    zero = clock_ns()
    positions = iter(range(len(arrivals_s)))
    lock = threading.Lock()
    starts, latencies = [0.0] * len(arrivals_s), [0.0] * len(arrivals_s)
    errors: list[BaseException] = []

    def serve() -> None:
        try:
            while not errors:
                with lock:
                    position = next(positions, None)
                if position is None:
                    return
                early_s = arrivals_s[position] - (clock_ns() - zero) / 1e9
                if early_s > 0:
                    sleep(early_s)
                starts[position] = (clock_ns() - zero) / 1e9
                call(position)
                latencies[position] = (clock_ns() - zero) / 1e9 - arrivals_s[position]
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            errors.append(error)

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(n_servers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    ends = [latency + arrival for latency, arrival in zip(latencies, arrivals_s, strict=True)]
    return Load(tuple(latencies), max(ends) - arrivals_s[0], _longest_queue(arrivals_s, starts))


def _longest_queue(arrivals_s: Sequence[float], starts_s: Sequence[float]) -> int:
    """Return the most calls that had arrived and not begun, just before any start."""
    longest, arrived = 0, 0
    for begun, start in enumerate(sorted(starts_s)):
        while arrived < len(arrivals_s) and arrivals_s[arrived] < start:
            arrived += 1
        longest = max(longest, arrived - begun)
    return longest
