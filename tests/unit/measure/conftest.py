"""Virtual time for calls whose durations are given."""

from collections.abc import Callable

import pytest


class TimedCalls:
    """Calls that take the seconds a function of (number of the call, position) says; time passes only in them."""

    def __init__(self, seconds_of: Callable[[int, int], float]) -> None:
        self.now_ns = 0
        self.positions: list[int] = []
        self._seconds_of = seconds_of

    def __call__(self, position: int) -> None:
        """Run one call."""
        self.now_ns += round(self._seconds_of(len(self.positions), position) * 1e9)
        self.positions.append(position)

    def clock_ns(self) -> int:
        """Return virtual nanoseconds."""
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ns += round(seconds * 1e9)


@pytest.fixture
def timed_calls():
    """Return the maker of timed calls."""
    return TimedCalls
