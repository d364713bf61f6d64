"""The real runner: turns a Config into a worker process on this host; it does not decide what is measured."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from tuner import environment
from tuner.errors import TrialError
from tuner.hardware import libraries, placement
from tuner.hardware.noise import TelemetryReader
from tuner.messages import (
    BlockDone,
    CheckFidelity,
    FidelityDone,
    Load,
    Loaded,
    Probe,
    Probed,
    RunBlock,
    Warm,
    Warmed,
)
from tuner.records.config import Config, ProcessSettings
from tuner.records.hardware import Host
from tuner.records.measurement import Effective, Telemetry
from tuner.runner.process import WorkerProcess
from tuner.runner.sweeping import remember

LOAD_LIMIT_S = 300.0
CALL_LIMIT_S = 30.0


class SystemClock:
    """Real time."""

    def now(self) -> float:
        """Return seconds of the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)


class WorkerArm:
    """A loaded model in a worker process."""

    def __init__(self, config: Config, process: WorkerProcess, loaded: Loaded, cpus: tuple[int, ...]) -> None:
        self.config = config
        self.process = process
        self.loaded = loaded
        self.arm_id = process.token
        self._call_s = CALL_LIMIT_S
        self._telemetry = TelemetryReader(Path("/"), cpus, process.pid)

    def warm(self, *, cap_s: float, quick_limit_s: float | None = None) -> Warmed:
        """Warm up; the first calls of all shapes get the call limit each."""
        self.resume()
        limit_s = cap_s + 10 * CALL_LIMIT_S
        warmed = self.process.ask(Warm(cap_s=cap_s, quick_limit_s=quick_limit_s), Warmed, limit_s=limit_s)
        self._call_s = max(warmed.call_s, 1e-4)
        return warmed

    def block(self, n: int, *, discard_calls: int, discard_s: float) -> tuple[BlockDone, Telemetry]:
        """Time a block, with the system's own record of the same span."""
        self.resume()
        limit_s = CALL_LIMIT_S + discard_s + 20 * (n + discard_calls) * self._call_s
        command = RunBlock(n=n, discard_calls=discard_calls, discard_s=discard_s)
        before = self._telemetry.read()
        done = self.process.ask(command, BlockDone, limit_s=limit_s)
        after = self._telemetry.read()
        return done, self._telemetry.delta(before, after)

    def fidelity(self, max_samples: int) -> FidelityDone:
        """Compare outputs with the reference."""
        self.resume()
        limit_s = CALL_LIMIT_S + 50 * max_samples * self._call_s
        return self.process.ask(CheckFidelity(max_samples=max_samples), FidelityDone, limit_s=limit_s)

    def pause(self) -> None:
        """Stop the process group."""
        self.process.pause()

    def resume(self) -> None:
        """Let it run."""
        self.process.resume()

    def close(self) -> None:
        """End the process."""
        self.process.close()


class LocalRunner:
    """Opens arms as worker processes.

    Args:
        host: This host.
        artifact_of: Returns the directory to open for a config; raises TrialError when it cannot be built.
        prepared: Directory of the prepared workload.
        work: Writable directory for logs and the list of started workers.
        cache_dir: For the engines' caches.
        offline: Whether workers are kept off the network.
        load_limit_s: Longest a load may take.
    """

    def __init__(
        self,
        *,
        host: Host,
        artifact_of: Callable[[Config], Path],
        prepared: Path,
        work: Path,
        cache_dir: Path,
        offline: bool = True,
        load_limit_s: float = LOAD_LIMIT_S,
    ) -> None:
        self.clock = SystemClock()
        self.host = host
        self.artifact_of = artifact_of
        self.prepared = prepared
        self.work = work
        self.cache_dir = cache_dir
        self.offline = offline
        self.load_limit_s = load_limit_s
        self._started = 0

    def spawn(self, process: ProcessSettings, name: str) -> tuple[WorkerProcess, tuple[int, ...]]:
        """Start a worker with the mask and environment of `process`; return it and its CPUs.

        Raises:
            TrialError: It did not come up; kind ``not_applied`` where an allocator or runtime is not installed.
        """
        cpus = placement.resolve(process.placement, self.host)
        preload = []
        for library in (process.allocator, process.openmp_runtime):
            if library is not None:
                path = libraries.find(library)
                if path is None:
                    raise TrialError("spawn", "not_applied", libraries.absence(library))
                preload.append(str(path))
        env = environment.worker_environment(
            os.environ, process, offline=self.offline, cache_dir=str(self.cache_dir), preload=preload
        )
        self._started += 1
        token = f"{os.getpid()}-{self._started}-{time.time_ns():x}"
        logs = self.work / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        pinned = process.placement.policy != "none" and hasattr(os, "sched_setaffinity")
        worker = WorkerProcess(
            env=env,
            log=logs / f"{name}.log",
            token=token,
            cpus=cpus if pinned else None,
            memory_policy=placement.memory_policy_text(process, self.host),
            directory=self.work,
        )
        try:
            remember(self.work / "workers.jsonl", worker.pid, token)
            worker.ready()
        except BaseException:  # an interrupt too
            worker.kill()
            raise
        return worker, cpus

    def open(self, config: Config) -> WorkerArm:
        """Start a fresh worker and load `config` in it."""
        artifact = self.artifact_of(config)
        worker, cpus = self.spawn(config.process, f"{config.backend}-{config.digest()[:8]}")
        command = Load(
            backend=config.backend,
            artifact=str(artifact),
            session=config.session,
            prepared=str(self.prepared),
            cache_dir=str(self.cache_dir / "engines"),
        )
        try:
            loaded = worker.ask(command, Loaded, limit_s=self.load_limit_s)
        except BaseException:  # an interrupt too
            worker.close()
            raise
        wrong = process_not_applied(config.process, loaded.effective, self.host)
        if wrong:
            worker.close()
            raise TrialError("load", "not_applied", "; ".join(wrong))
        return WorkerArm(config, worker, loaded, cpus)

    def sentinel(self, repeats: int) -> tuple[float, ...]:
        """Run the sentinel in a worker of its own."""
        worker, _ = self.spawn(ProcessSettings(), "sentinel")
        try:
            return worker.ask(Probe(repeats=repeats), Probed, limit_s=60.0).samples_s["sentinel"]
        finally:
            worker.close()


def process_not_applied(process: ProcessSettings, effective: Effective, host: Host) -> tuple[str, ...]:
    """Return one text for every variable or memory policy that was asked for and that the worker was started without.

    What cannot be read there (no /proc, no such system call) is left out.
    """
    found = effective.environment
    wrong = [
        f"process.env.{name}: asked {value}, started with {found.get(name)}"
        for name, value in process.env.items()
        if found and found.get(name) != value
    ]
    asked = placement.memory_policy_text(process, host)
    if asked is not None and effective.memory_policy not in (None, asked):
        wrong.append(f"process.memory_policy: asked {asked}, in force {effective.memory_policy}")
    return tuple(wrong)
