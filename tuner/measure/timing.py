"""Times calls inside a worker: warm-up and blocks; it knows neither engines nor processes, and its clock is given."""

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tuner.measure.plan import QUICK_CALLS, slow_warm_calls
from tuner.measure.rates import Load, run_callers, run_servers

WarmKind = Literal["flat", "warmup", "slowdown", "no_steady", "capped", "dominated"]
Call = Callable[[int], object]
ClockNs = Callable[[], int]

WINDOW_CALLS = 8
WINDOW_S = 0.25
TOLERANCE = 0.02
_LEAST_WINDOWS = 5
_DOWNWARD_RUN = 4


@dataclass(frozen=True)
class Warming:
    """What a warm-up saw; seconds.

    Attributes:
        first_call_s: The very first call.
        first_calls_s: First call of every distinct shape, in order of appearance.
        fastest_s: Fastest of the first three warm calls of the first shape.
        call_s: Median of the last window.
        calls: All calls made, first ones included.
        wall_s: Time spent in this function.
        kind: ``flat``, ``warmup``, ``slowdown``, ``no_steady``, ``capped`` or ``dominated``.
        windows_s: Median of every window.
    """

    first_call_s: float
    first_calls_s: tuple[float, ...]
    fastest_s: float
    call_s: float
    calls: int
    wall_s: float
    kind: WarmKind
    windows_s: tuple[float, ...]

    @property
    def n_shapes(self) -> int:
        """Return the number of distinct shapes."""
        return len(self.first_calls_s)


@dataclass(frozen=True)
class Timings:
    """One block of calls; seconds.

    Attributes:
        latencies_s: Every timed call in order; nothing is dropped.
        cpu_s: CPU time of this process over the timed calls.
        wall_s: Wall time over the timed calls.
        discarded: Calls made before, not timed.
    """

    latencies_s: tuple[float, ...]
    cpu_s: float
    wall_s: float
    discarded: int


def warm_up(
    call: Call,
    first_of_shape: Sequence[int],
    *,
    cap_s: float,
    quick_limit_s: float | None = None,
    clock_ns: ClockNs = time.perf_counter_ns,
) -> Warming:
    """Run every distinct shape once, then windows of calls until their medians agree twice in a row.

    A window is max(8 calls, 0.25 s) and starts at position 0 of the cycle; two windows are compared over the calls they
    share, so mixed shapes do not look like drift. They agree within max(2%, 2·MAD/√w) and while no four medians fall in
    a row (after pyperf's calibration and the classes of Barrett et al., OOPSLA 2017). Calls of 0.5 s and more get two
    warm calls, of 5 s and more one.

    Args:
        call: Runs batch `i` of the cycle; any non-negative `i` is allowed (the callee takes it modulo its batches).
        first_of_shape: Position in the cycle of the first batch of every distinct shape; the first is usually 0.
        cap_s: Most seconds spent after the first calls.
        quick_limit_s: Stop as ``dominated`` if the fastest of three warm calls is slower; None never.
        clock_ns: Monotonic nanoseconds.
    """
    started = clock_ns()
    firsts = tuple(_timed(call, position, clock_ns) for position in first_of_shape)
    capped_at = clock_ns() + round(cap_s * 1e9)
    quick = _quick_calls(call, first_of_shape[0], clock_ns)
    calls = len(firsts) + len(quick)
    fastest = min(quick)
    windows: list[np.ndarray] = []
    kind: WarmKind
    if quick_limit_s is not None and fastest > quick_limit_s:
        kind = "dominated"
    elif slow_warm_calls(fastest) is not None:
        kind = "capped"
    else:
        kind = _run_windows(call, windows, capped_at, clock_ns)
        calls += sum(len(window) for window in windows)
    medians = tuple(float(np.median(window)) for window in windows)
    return Warming(
        first_call_s=firsts[0],
        first_calls_s=firsts,
        fastest_s=fastest,
        call_s=medians[-1] if medians else float(np.median(quick)),
        calls=calls,
        wall_s=(clock_ns() - started) / 1e9,
        kind=kind,
        windows_s=medians,
    )


def run_block(
    call: Call,
    n: int,
    *,
    discard_calls: int,
    discard_s: float,
    callers: int = 1,
    arrivals_s: Sequence[float] | None = None,
    clock_ns: ClockNs = time.perf_counter_ns,
    cpu_clock_ns: ClockNs = time.process_time_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> Timings:
    """Time `n` calls from position 0 of the cycle, after discarding max(`discard_calls`, `discard_s`) calls.

    One caller times each call; several make ⌈n / callers⌉ calls each, at once; with `arrivals_s` (n of them, see
    `rates.poisson_arrivals`) each latency runs from the scheduled arrival.

    Args:
        call: Runs batch `i` of the cycle, as for `warm_up`.
        n: Timed calls; the same in both arms of a pair.
        discard_calls: Least number of calls before (caches refill after the other arm ran).
        discard_s: Least time of calls before.
        callers: Threads that call at once.
        arrivals_s: Scheduled arrivals in seconds from the start of the timed calls, None for a closed loop.
        clock_ns: Monotonic nanoseconds.
        cpu_clock_ns: CPU nanoseconds of this process, all threads.
        sleep: Waits for an arrival.
    """
    discarded = 0
    started = clock_ns()
    while discarded < discard_calls or (discard_calls > 0 and clock_ns() - started < discard_s * 1e9):
        call(discarded)
        discarded += 1
    cpu_started = cpu_clock_ns()
    if arrivals_s is not None:
        load = run_servers(call, arrivals_s[:n], callers, clock_ns=clock_ns, sleep=sleep)
    elif callers > 1:
        load = run_callers(call, callers, math.ceil(n / callers), clock_ns=clock_ns)
    else:
        load = _one_caller(call, n, clock_ns)
    return Timings(load.latencies_s, (cpu_clock_ns() - cpu_started) / 1e9, load.wall_s, discarded)


def _one_caller(call: Call, n: int, clock_ns: ClockNs) -> Load:
    """Time calls back to back; one look at the clock between two."""
    marks = [0] * (n + 1)
    marks[0] = clock_ns()
    for position in range(n):
        call(position)
        marks[position + 1] = clock_ns()
    latencies = tuple((after - before) / 1e9 for before, after in itertools.pairwise(marks))
    return Load(latencies, (marks[-1] - marks[0]) / 1e9)


def _timed(call: Call, position: int, clock_ns: ClockNs) -> float:
    before = clock_ns()
    call(position)
    return (clock_ns() - before) / 1e9


def _quick_calls(call: Call, position: int, clock_ns: ClockNs) -> list[float]:
    """Return three warm calls of one shape, fewer where the model is slow."""
    quick = [_timed(call, position, clock_ns)]
    while len(quick) < (slow_warm_calls(min(quick)) or QUICK_CALLS):
        quick.append(_timed(call, position, clock_ns))
    return quick


def _run_windows(call: Call, windows: list[np.ndarray], capped_at: int, clock_ns: ClockNs) -> WarmKind:
    """Append windows until they are steady or the cap is reached; return the class of the whole."""
    agreed = 0
    while clock_ns() < capped_at:
        windows.append(_window(call, capped_at, clock_ns))
        agreed = (
            agreed + 1
            if len(windows) > 1 and len(windows[-1]) >= WINDOW_CALLS and _agree(windows[-2], windows[-1])
            else 0
        )
        if agreed >= 2 and not _falling(windows):  # noqa: PLR2004 - twice in a row
            return _classify(windows)
    return "no_steady" if len(windows) > _LEAST_WINDOWS else "capped"


def _window(call: Call, capped_at: int, clock_ns: ClockNs) -> np.ndarray:
    times: list[float] = []
    started = clock_ns()
    while len(times) < WINDOW_CALLS or clock_ns() - started < WINDOW_S * 1e9:
        times.append(_timed(call, len(times), clock_ns))
        if clock_ns() >= capped_at:
            break
    return np.asarray(times)


def _agree(before: np.ndarray, after: np.ndarray) -> bool:
    """Say whether two windows have the same median within max(2%, 2·MAD/√w) over the calls they share."""
    shared = min(len(before), len(after))
    one, two = before[:shared], after[:shared]
    median = float(np.median(one))
    if median <= 0:
        return True
    spread = float(np.median(np.abs(one - median))) / median
    return abs(float(np.median(two)) / median - 1) < max(TOLERANCE, 2 * spread / math.sqrt(shared))


def _falling(windows: list[np.ndarray]) -> bool:
    last = [float(np.median(window)) for window in windows[-_DOWNWARD_RUN:]]
    return len(last) == _DOWNWARD_RUN and all(after < before for before, after in itertools.pairwise(last))


def _classify(windows: list[np.ndarray]) -> WarmKind:
    """Return ``slowdown`` if an earlier window was faster than the last, ``warmup`` if the first was slower."""
    fastest = min(windows, key=lambda window: float(np.median(window)))
    if not _agree(fastest, windows[-1]):
        return "slowdown"
    return "flat" if _agree(windows[0], windows[-1]) else "warmup"
