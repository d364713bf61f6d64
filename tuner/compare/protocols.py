"""What compare() needs of the world: a clock and a runner that opens arms, real (runner) or simulated (replay)."""

from typing import Protocol

from tuner.messages import BlockDone, FidelityDone, Loaded, Warmed
from tuner.records.config import Config
from tuner.records.measurement import Telemetry


class Clock(Protocol):
    """Time; virtual in tests."""

    def now(self) -> float:
        """Return seconds of a monotonic clock."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class Arm(Protocol):
    """One worker process with a loaded model; every method may raise TrialError, after which the arm is closed."""

    arm_id: str
    config: Config
    loaded: Loaded

    def warm(self, *, cap_s: float, quick_limit_s: float | None = None) -> Warmed:
        """Warm up."""

    def block(self, n: int, *, discard_calls: int, discard_s: float) -> tuple[BlockDone, Telemetry]:
        """Time `n` calls; telemetry is what the system saw meanwhile."""

    def fidelity(self, max_samples: int) -> FidelityDone:
        """Compare outputs with the reference."""

    def pause(self) -> None:
        """SIGSTOP the process group."""

    def resume(self) -> None:
        """SIGCONT the process group."""

    def close(self) -> None:
        """End the process; never raises."""


class Runner(Protocol):
    """Opens arms: a real process, a replayed trace or a simulated host."""

    @property
    def clock(self) -> Clock:
        """The clock that all times are taken from."""

    def open(self, config: Config) -> Arm:
        """Start a fresh process and load `config` in it.

        Raises:
            TrialError: It did not load; the artifact is missing, the worker died, a setting is not in force.
        """

    def sentinel(self, repeats: int) -> tuple[float, ...]:
        """Return seconds of `repeats` sentinel loops, run in a process of its own."""
