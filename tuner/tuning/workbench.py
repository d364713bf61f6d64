"""Measures configurations outside a study (verify, bench): a model prepared, a rig set up, nothing searched or kept."""

import contextlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tuner.artifacts.store import Store
from tuner.compare.arms import ArmCost
from tuner.compare.rig import Rig
from tuner.errors import ProfileMismatch
from tuner.hardware.detection import detect
from tuner.loading.checking import model_difference
from tuner.models.metrics import require_trust_in_metric
from tuner.records.config import Config, ProcessSettings
from tuner.records.events import Event, OnEvent
from tuner.records.hardware import Host
from tuner.records.measurement import Fidelity
from tuner.records.model import ModelFacts, Prepared
from tuner.records.profile import Profile
from tuner.records.workload import Objective, Workload
from tuner.runner.local import LocalRunner
from tuner.runner.process import WorkerProcess
from tuner.runner.sweeping import become_subreaper
from tuner.study.building import Workshop
from tuner.tuning.engines import warm_cap_s
from tuner.tuning.interrupting import Interrupts
from tuner.tuning.samples import MAX_SAMPLES, affordable_samples, reference_budget_s


@dataclass
class Workbench:
    """Everything that a comparison outside a study needs."""

    host: Host
    rig: Rig
    workshop: Workshop
    prepared: Prepared
    budget_s: float

    def open_once(self, config: Config, *, with_fidelity: bool) -> tuple[Fidelity | None, ArmCost]:
        """Open `config` once: compare its outputs with the reference within 5% of the budget, and say what it costs.

        Raises:
            TrialError: It does not load or its outputs are wrong.
        """
        arm, run = self.rig.start(config, "a")
        try:
            fidelity = self.rig.check_fidelity(arm, self.samples(run.call_s)).fidelity if with_fidelity else None
            return fidelity, run.cost()
        finally:
            arm.close()

    def samples(self, call_s: float) -> int:
        """Return the fidelity samples of a comparison with an arm whose calls take so long."""
        return affordable_samples(self.prepared, self.budget_s, call_s)


@contextlib.contextmanager
def workbench(
    model: ModelFacts,
    workload: Workload,
    objective: Objective,
    *,
    cache_dir: Path,
    budget_s: float,
    seed: int = 0,
    on_event: OnEvent,
) -> Iterator[Workbench]:
    """Prepare the workload and set up a rig in a temporary directory below the cache.

    While it is open, Ctrl-C and SIGTERM end what goes on, workers and temporary files included.

    Raises:
        UsageError: The model or the data cannot be used.
        HostError: The cache cannot be written.
    """
    started = time.monotonic()
    become_subreaper()
    host = detect()
    store = Store(cache_dir)

    def say(name: str, build_s: float | None) -> None:
        text = f"building {name}" if build_s is None else f"built {name} in {build_s:.1f} s"
        on_event(Event(kind="build" if build_s is None else "built", text=text, elapsed_s=time.monotonic() - started))

    def spawn(process: ProcessSettings, name: str) -> tuple[WorkerProcess, tuple[int, ...]]:
        return runner.spawn(process, name)

    workshop = Workshop(store=store, spawn=spawn, model=model, on_build=say, isa=host.compute_isa)
    with Interrupts() as interrupts, tempfile.TemporaryDirectory(prefix="bench-", dir=store.root) as work:
        on_event = interrupts.passed_on(on_event)
        runner = LocalRunner(
            host=host,
            artifact_of=workshop.artifact_of,
            prepared=store.root,
            work=Path(work),
            cache_dir=store.root,
        )
        prepared = workshop.prepare(
            workload,
            None if workload.data.source == "builtin" else workload.data.source,
            max_samples=MAX_SAMPLES,
            sample_budget_s=reference_budget_s(objective, budget_s),
            metric=objective.metric,
            code_dir=str(Path.cwd()),
        )
        assert workshop.prepared is not None
        runner.prepared = workshop.prepared
        rig = Rig(
            runner,
            objective,
            budget_s=budget_s,
            seed=seed,
            items_per_batch=prepared.items_per_batch,
            warm_cap_s=warm_cap_s,
            memory_budget_bytes=host.memory_budget_bytes,
        )
        yield Workbench(host, rig, workshop, prepared, budget_s)


def model_of(
    profile: Profile, path: Path, model: str | None, cache_dir: Path, *, trust_code: bool = False
) -> ModelFacts:
    """Return the model of a profile where it is now.

    Raises:
        ProfileMismatch: It is not there, or another model is.
        UsageError: It or the profile's metric runs code that is not trusted.
    """
    metric = profile.objective.metric
    require_trust_in_metric(None if metric is None else metric.name, trust_code=trust_code, source=path.name)
    facts, difference = model_difference(profile, path, model, cache_dir, trust_code=trust_code)
    if facts is None or difference is not None:
        raise ProfileMismatch(f"{path.name}: {difference.detail if difference else 'the model is gone'}")
    return facts
