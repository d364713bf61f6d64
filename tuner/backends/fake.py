"""A backend without an engine, for tests of everything around one: chosen latency, and every way a trial can go wrong.

It answers ``output`` = the mean of each input over all axes but the first, summed over the inputs, (rows,) float32:
what a graph ``output = ReduceMean(x)`` with one input answers. It is used only when named.
"""

import os
import random
import signal
import sys
import time
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar, Literal, NoReturn, cast

import numpy as np
from pydantic import Field

from tuner.backends.base import Batch, Context, Settings
from tuner.errors import Unsupported
from tuner.plugins import installed_versions, space_file
from tuner.records.model import ModelFacts
from tuner.records.workload import Workload

__all__ = ["Fake", "FakeSession", "FakeSettings"]

FLOOD_LINES = 20_000
SERIAL_SHARE = 0.1
"""Share of the latency that threads do not shorten."""


class FakeSettings(Settings):
    """What to pretend; None is a plain, quick, honest engine.

    Attributes:
        latency_us: Microseconds of one call on one thread; 0 returns at once.
        threads: Shortens the part of the latency that is not serial.
        noise: Standard deviation of the logarithm of the latency.
        mode: What goes wrong; ``lie`` reads back one thread more than asked.
        stage: Where it goes wrong.
        after_calls: Calls that go well before.
        signal: The signal of mode ``crash``.
        load_s: Seconds that opening takes in mode ``slow_load``.
    """

    latency_us: float | None = Field(default=None, ge=0)
    threads: int | None = Field(default=None, ge=1)
    noise: float | None = Field(default=None, ge=0)
    mode: (
        Literal[
            "crash",
            "hang",
            "print",
            "lie",
            "out_of_memory",
            "wrong_output",
            "nan_output",
            "wrong_shape",
            "exit_silently",
            "slow_load",
            "unsupported",
            "error",
        ]
        | None
    ) = None
    stage: Literal["open", "run"] | None = None
    after_calls: int | None = Field(default=None, ge=0)
    signal: int | None = Field(default=None, ge=1, le=64)
    load_s: float | None = Field(default=None, ge=0)


class FakeSession:
    """Pretends."""

    def __init__(self, settings: FakeSettings, seed: int) -> None:
        self._settings = settings
        self._random = random.Random(seed)  # noqa: S311 - noise, no secret
        self._calls = 0
        self._threads = settings.threads or 1
        self._latency_s = 1e-6 * (settings.latency_us or 0) * (SERIAL_SHARE + (1 - SERIAL_SHARE) / self._threads)
        if settings.mode == "slow_load":
            time.sleep(settings.load_s or 0)
        if settings.stage == "open":
            self._go_wrong()

    def run(self, batch: Batch) -> Batch:
        """Wait as long as asked and answer the means."""
        self._calls += 1
        is_due = self._settings.stage != "open" and self._calls > (self._settings.after_calls or 0)
        if is_due and self._settings.mode is not None:
            self._go_wrong()
        if self._latency_s:
            time.sleep(self._latency_s * self._random.lognormvariate(0, self._settings.noise or 0))
        output = sum(_mean_of_rows(array) for array in batch.values())
        return {"output": self._spoiled(np.asarray(output, np.float32)) if is_due else np.asarray(output, np.float32)}

    def effective(self) -> dict[str, object]:
        """Return what was asked, or one thread more in mode ``lie``."""
        asked = {name: value for name, value in self._settings.model_dump().items() if value is not None}
        threads = self._threads + (self._settings.mode == "lie")
        return asked | {"threads": threads, "precision": "float32", "unverified": []}

    def close(self) -> None:
        """Do nothing."""

    def _spoiled(self, output: np.ndarray) -> np.ndarray:
        if self._settings.mode == "wrong_output":
            return -output - 1
        if self._settings.mode == "nan_output":
            return np.full_like(output, np.nan)
        return output[None] if self._settings.mode == "wrong_shape" else output

    def _go_wrong(self) -> None:
        mode = self._settings.mode
        if mode == "crash":
            _die(self._settings.signal or signal.SIGSEGV)
        elif mode == "out_of_memory":
            _die(signal.SIGKILL)
        elif mode == "exit_silently":
            os._exit(0)
        elif mode == "hang":
            while True:
                time.sleep(3600)
        elif mode == "print":
            for stream in (sys.stdout, sys.stderr):
                stream.write(f'{{"answer": "bye"}} {"noise " * 20}\n' * FLOOD_LINES)
                stream.flush()
        elif mode == "unsupported":
            raise Unsupported("the fake backend was asked not to support this")
        elif mode == "error":
            raise ValueError("the fake backend was asked to fail")


class Fake:
    """Takes any model and opens none."""

    name: ClassVar[str] = "fake"
    SessionSettings: ClassVar[type[Settings]] = FakeSettings

    def installed(self) -> dict[str, str] | None:
        """Return the version of this package, which it is part of."""
        return installed_versions("autotune-cpu")

    def supports(self, model: ModelFacts, workload: Workload) -> str | None:  # noqa: ARG002 - part of the protocol
        """Take everything."""
        return None

    def space(self) -> Traversable:
        """Return its search space."""
        return space_file("fake.toml")

    def open(self, artifact: Path, settings: Settings, context: Context) -> FakeSession:  # noqa: ARG002
        """Open nothing."""
        return FakeSession(cast("FakeSettings", settings), context.workload.seed)


def _mean_of_rows(array: np.ndarray) -> np.ndarray:
    rows = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
    mean: np.ndarray = rows.astype(np.float32).mean(axis=1)
    return mean


def _die(number: int) -> NoReturn:
    """End this process by a signal, with its default action."""
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    while True:
        time.sleep(1)
