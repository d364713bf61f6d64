"""A model loaded in this worker: warm-up, timed blocks and fidelity; it decides nothing about the results."""

import gc
import resource
import time
from pathlib import Path
from typing import cast

import numpy as np

from tuner.backends.base import Backend, Batch, Context
from tuner.environment import allowed_names
from tuner.hardware.memory_policy import read_policy
from tuner.measure import memory, rates, timing
from tuner.messages import BlockDone, CheckFidelity, FidelityDone, Load, Loaded, RunBlock, Warm, Warmed
from tuner.plugins import plugin
from tuner.records.base import Scalar
from tuner.records.measurement import Effective
from tuner.records.model import Prepared
from tuner.worker import reading


class NotApplied(Exception):  # noqa: N818 - the design's name of this kind of failure
    """A setting was asked for and is not in force."""


class LoadedModel:
    """One open session and the batches it is timed on."""

    def __init__(self, command: Load) -> None:
        prepared_dir = Path(command.prepared)
        self.prepared_dir = prepared_dir
        self.prepared = Prepared.from_json((prepared_dir / "prepared.json").read_bytes(), source="prepared.json")
        self.batches = read_batches(prepared_dir / "inputs.npz", self.prepared.n_batches)
        self.asked = {name: value for name, value in command.session.items() if value is not None}
        backend = cast("Backend", plugin("tuner.backends", command.backend))
        settings = backend.SessionSettings.from_json_object(self.asked, source=f"backend {command.backend}")
        context = Context(model=self.prepared.model, workload=self.prepared.workload, cache_dir=command.cache_dir)
        self.cpus = reading.own_cpus()
        start = time.perf_counter()
        self.session = backend.open(Path(command.artifact), settings, context)
        load_s = time.perf_counter() - start
        peak = memory.peak_rss_bytes()
        memory.reset_peak()
        self.loaded = Loaded(
            load_s=load_s,
            spawn_to_loaded_s=reading.process_age_s(),
            peak_rss_bytes=peak,
            rss_bytes=memory.rss_bytes(),
            effective=self.read_back(),
            versions=backend.installed() or {},
        )

    def read_back(self) -> Effective:
        """Return what is in force.

        Raises:
            NotApplied: A setting reads back otherwise, or a thread left the mask that was asked for.
        """
        answer = dict(self.session.effective())
        unverified = answer.pop("unverified", ())
        wrong = list(reading.settings_not_applied(self.asked, answer))
        escaped = reading.escaped_threads(reading.thread_masks(), self.cpus)
        if escaped and self.asked:
            thread, mask = next(iter(escaped.items()))
            wrong.append(f"mask: thread {thread} runs on CPUs {list(mask)}, outside {list(self.cpus)}")
        environment = reading.started_with()
        try:
            maps = Path("/proc/self/maps").read_text()
        except OSError:
            maps = ""
        if maps:
            wrong += [f"LD_PRELOAD: {path} is not mapped" for path in reading.preloads_not_mapped(environment, maps)]
        if wrong:
            raise NotApplied("; ".join(wrong))
        libraries = reading.mapped_libraries(maps)
        threads, precision = answer.pop("threads", None), answer.pop("precision", None)
        settings: dict[str, Scalar] = {
            name: value for name, value in answer.items() if isinstance(value, (bool, int, float, str))
        }
        if "threads" in self.asked:
            settings["threads"] = cast("int", threads)
        if "precision" in self.asked:
            settings["precision"] = cast("str", precision)
        return Effective(
            threads=cast("int | None", threads),
            cpus=self.cpus,
            precision=cast("str | None", precision),
            libraries=libraries,
            unverified=tuple(cast("tuple[str, ...]", unverified)),
            settings=settings,
            environment={name: environment[name] for name in allowed_names() if name in environment},
            memory_policy=policy_text(),
        )

    def call(self, index: int) -> None:
        """Run batch `index` of the cycle."""
        self.session.run(self.batches[index % len(self.batches)])

    def warm(self, command: Warm) -> Warmed:
        """Warm every distinct shape, then windows until they agree."""
        gc.collect()
        gc.freeze()
        gc.disable()
        warming = timing.warm_up(
            self.call, distinct_shapes(self.batches), cap_s=command.cap_s, quick_limit_s=command.quick_limit_s
        )
        if self.prepared.workload.concurrency > 1:
            rates.run_callers(self.call, self.prepared.workload.concurrency, 2)
        self.read_back()  # pools that start at the first call have started now
        return Warmed(
            first_call_s=warming.first_call_s,
            fastest_s=warming.fastest_s,
            call_s=warming.call_s,
            calls=warming.calls,
            wall_s=warming.wall_s,
            kind=warming.kind,
            n_shapes=warming.n_shapes,
            windows_s=warming.windows_s,
        )

    def block(self, command: RunBlock) -> BlockDone:
        """Time one block."""
        before = resource.getrusage(resource.RUSAGE_SELF)
        timed = self._timed(command)
        after = resource.getrusage(resource.RUSAGE_SELF)
        return BlockDone(
            latencies_s=timed.latencies_s,
            cpu_s=timed.cpu_s,
            wall_s=timed.wall_s,
            discarded=timed.discarded,
            peak_rss_bytes=memory.peak_rss_bytes(),
            rss_bytes=memory.rss_bytes(),
            major_faults=after.ru_majflt - before.ru_majflt,
            involuntary_switches=after.ru_nivcsw - before.ru_nivcsw,
        )

    def _timed(self, command: RunBlock) -> timing.Timings:
        """Run the discarded calls, then the timed ones as the workload's traffic has them, the same in both arms."""
        workload = self.prepared.workload
        rate = workload.rate_per_s
        return timing.run_block(
            self.call,
            command.n,
            discard_calls=command.discard_calls,
            discard_s=command.discard_s,
            callers=workload.concurrency,
            arrivals_s=None if rate is None else rates.poisson_arrivals(rate, command.n, workload.seed),
        )

    def fidelity(self, command: CheckFidelity) -> FidelityDone:
        """Compare outputs with the references."""
        from tuner.models.judging import judge

        return judge(self.prepared_dir, self.prepared, self.session.run, command)

    def close(self) -> None:
        """Close the session."""
        self.session.close()


def policy_text() -> str | None:
    """Return the memory policy in force, ``default`` or mode and nodes."""
    policy = read_policy()
    if policy is None or not policy.nodes:
        return policy and policy.mode
    return f"{policy.mode}:{','.join(str(node) for node in policy.nodes)}"


def read_batches(path: Path, n: int) -> list[Batch]:
    """Read `n` batches whose arrays are named ``<batch>.<input>``; C-contiguous (scalars stay scalars), no pickle."""
    batches: list[Batch] = [{} for _ in range(n)]
    with np.load(path, allow_pickle=False) as arrays:
        for key in arrays.files:
            number, _, name = key.partition(".")
            batches[int(number)][name] = np.asarray(arrays[key], order="C")
    return batches


def distinct_shapes(batches: list[Batch]) -> tuple[int, ...]:
    """Return the index of the first batch of every distinct set of shapes."""
    first: dict[tuple[tuple[str, tuple[int, ...]], ...], int] = {}
    for index, batch in enumerate(batches):
        first.setdefault(tuple((name, array.shape) for name, array in sorted(batch.items())), index)
    return tuple(first.values())
