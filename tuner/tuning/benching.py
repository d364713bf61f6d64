"""`bench`: one configuration measured in fresh processes on this host; it compares nothing and claims nothing."""

from pathlib import Path

from tuner.artifacts.places import cache_directory
from tuner.compare.bench import run_bench
from tuner.errors import HostError, TrialError
from tuner.models.inspect import inspect
from tuner.records.base import Record
from tuner.records.config import Config
from tuner.records.events import OnEvent
from tuner.records.measurement import Measured, Measurement
from tuner.records.model import ModelFacts
from tuner.records.profile import Profile
from tuner.records.workload import Objective, Workload
from tuner.tuning.workbench import model_of, workbench


class BenchResult(Record):
    """A configuration measured.

    Attributes:
        low, high: 95% interval of the target's figure over processes; seconds, bytes or items/s.
    """

    measured: Measured
    target: str
    figure: float
    low: float
    high: float
    processes: int


def bench_profile(
    profile: Profile,
    path: Path,
    *,
    processes: int,
    model: str | None,
    cache_dir: str | None,
    trust_code: bool = False,
    on_event: OnEvent,
) -> BenchResult:
    """Measure the best configuration of a profile on its own workload."""
    cache = cache_directory(cache_dir)
    facts = model_of(profile, path, model, cache, trust_code=trust_code)
    return bench_config(
        profile.best.config,
        facts,
        profile.workload,
        profile.objective,
        processes=processes,
        cache=cache,
        on_event=on_event,
    )


def bench_file(
    config: Config,
    model: str,
    *,
    lengths: tuple[int, ...],
    batch_size: int,
    processes: int,
    cache_dir: str | None,
    trust_code: bool = False,
    on_event: OnEvent,
) -> BenchResult:
    """Measure a configuration of a file on a model."""
    cache = cache_directory(cache_dir)
    facts = inspect(model, None, cache_dir=cache, trust_code=trust_code)
    workload = Workload(task=facts.task, lengths=lengths, batch_size=batch_size)
    return bench_config(config, facts, workload, Objective(), processes=processes, cache=cache, on_event=on_event)


def bench_config(
    config: Config,
    facts: ModelFacts,
    workload: Workload,
    objective: Objective,
    *,
    processes: int,
    cache: Path,
    on_event: OnEvent,
) -> BenchResult:
    """Measure `config` in fresh processes.

    Raises:
        HostError: It does not build or run here; says how it failed.
    """
    with workbench(facts, workload, objective, cache_dir=cache, budget_s=900.0, on_event=on_event) as bench:
        try:
            bench.workshop.ensure(config)
            outcome = run_bench(config, bench.rig, processes=processes, fidelity_samples=bench.samples)
        except TrialError as error:
            raise HostError(f"{config.backend} {config.chain()} does not run here: {error}") from error
        items = bench.prepared.items_per_batch
    cost = outcome.cost
    value, low, high = cost.mean, cost.low, cost.high
    if objective.direction == "maximize":
        value, low, high = items / cost.mean, items / cost.high, items / cost.low
    measurement: Measurement = outcome.measurement
    return BenchResult(
        measured=Measured(config=config, measurement=measurement),
        target=objective.target,
        figure=value,
        low=low,
        high=high,
        processes=len(outcome.runs),
    )
