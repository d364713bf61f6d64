"""Gathers what a run works on (host, model, workload, space, engines) and checks it before any process starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tuner.backends.base import Backend
from tuner.errors import HostError, UsageError
from tuner.hardware import libraries, placement
from tuner.loading.files import check_process
from tuner.models.data import check_data
from tuner.models.digests import digest_file
from tuner.models.fitting import check_lengths, check_memory
from tuner.models.inspect import inspect
from tuner.models.metrics import check_rows, metric_of
from tuner.plugins import plugin
from tuner.records.base import digest_of
from tuner.records.config import Config
from tuner.records.hardware import Host
from tuner.records.measurement import Notice
from tuner.records.model import ModelFacts
from tuner.records.workload import DataSource, Objective, Workload
from tuner.space.facts import facts_of_host, facts_of_model, facts_of_workload
from tuner.space.resolved import ResolvedSpace
from tuner.study.objective import parse_objective
from tuner.tuning.engines import check_backends, declared_space, dropped_steps, missing_steps, usable_backends
from tuner.tuning.limits import with_limits
from tuner.tuning.request import TuneRequest, parse_fixes

BASELINE_BACKENDS = {
    "huggingface": "pytorch",
    "python": "pytorch",
    "onnx": "onnxruntime",
    "openvino": "openvino",
}
"""What a user gets without us, by kind of model (contract, Baseline)."""


@dataclass(frozen=True)
class Plan:
    """Everything a run needs to know before its first process."""

    request: TuneRequest
    host: Host
    model: ModelFacts
    workload: Workload
    objective: Objective
    space: ResolvedSpace
    space_sha256: str
    baseline: Config
    fallback: Config
    backends: tuple[str, ...]
    versions: dict[str, str]
    notices: tuple[Notice, ...]
    key_parts: dict[str, str]

    @property
    def key(self) -> str:
        """Digest that names the study: model, workload, objective, space, host and library versions."""
        return digest_of(self.key_parts)


def make_plan(request: TuneRequest, host: Host, cache_dir: Path) -> Plan:
    """Check a request against files, engines and host.

    Raises:
        UsageError: Something in the request cannot be used; named first is what the user typed wrong.
        HostError: No engine can run the model.
    """
    names = check_backends(request.backends)
    objective = parse_objective(
        request.target, at_most=request.at_most, at_least=request.at_least, expressions=request.constraint
    )
    fixes = parse_fixes(request.fix)
    check_libraries(fixes, host)
    metric = metric_of(request.metric, request.max_loss, request.data)
    model = inspect(
        request.model,
        request.task,
        cache_dir=cache_dir,
        trust_code=request.trust_code,
        check=lambda facts: check_fit(request, facts, host),
    )
    workload = workload_of(request, model)
    n_rows = check_rows(metric, model, request.data) if metric is not None and request.data is not None else None
    objective = with_limits(objective, model, metric, n_rows)
    usable, versions, notices = usable_backends(names, model, workload, explicit=request.backends is not None)
    declared = declared_space(usable, request.space)
    space = declared.resolve(
        facts_of_host(host),
        facts_of_model(model),
        facts_of_workload(workload),
        dropped_steps=dropped_steps(model.kind),
        missing_steps=missing_steps(),
        backends=usable,
        fixed=fixes,
    )
    baseline = baseline_config(request.baseline, model, host)
    return Plan(
        request=request,
        host=host,
        model=model,
        workload=workload,
        objective=objective,
        space=space,
        space_sha256=declared.digest(),
        baseline=baseline,
        fallback=fallback_config(space, model, baseline),
        backends=tuple(usable),
        versions=versions,
        notices=(*host.notices, *notices),
        key_parts={
            "model": model.sha256,
            "workload": workload.digest(),
            "objective": objective.digest(),
            "space": digest_of([declared.digest(), sorted(usable), sorted(fixes.items()), baseline.digest()]),
            "host": host.fingerprint,
            "libraries": digest_of(versions),
        },
    )


def check_fit(request: TuneRequest, model: ModelFacts, host: Host) -> None:
    """Refuse what cannot fit, before gigabytes are read for a digest.

    Raises:
        UsageError: A length above the model's limit, or a model too large for this host's memory.
    """
    workload = Workload(task=model.task, lengths=request.lengths, batch_size=request.batch_size)
    check_lengths(model, workload)
    if host.memory_budget_bytes is not None:
        check_memory(model, workload, host.memory_budget_bytes)


def check_libraries(fixes: Mapping[str, str], host: Host) -> None:
    """Refuse a fixed allocator or OpenMP runtime that no trial could have.

    Raises:
        HostError: It is known and not installed; names the package. An unknown one is left to the space's own check.
    """
    places = (
        ("process.allocator", libraries.ALLOCATORS, host.allocators),
        ("process.openmp_runtime", libraries.OPENMP_RUNTIMES, host.openmp_runtimes),
    )
    for key, known, present in places:
        name = next((text for full, text in fixes.items() if full.rpartition("/")[2] == key), None)
        if name in known and name not in present:
            raise HostError(f"--fix {key}={name}: {libraries.absence(name)}")


def workload_of(request: TuneRequest, model: ModelFacts) -> Workload:
    """Return the traffic.

    Raises:
        UsageError: Unusable data.
    """
    data = DataSource()
    if request.data is not None:
        n = check_data(request.data)
        data = DataSource(source=request.data, sha256=digest_file(Path(request.data).expanduser()), n=n)
    return Workload(
        task=model.task,
        lengths=request.lengths,
        batch_size=request.batch_size,
        concurrency=request.concurrency,
        rate_per_s=request.rate_per_s,
        data=data,
        seed=request.seed,
    )


def baseline_config(path: str | None, model: ModelFacts, host: Host) -> Config:
    """Return what a user gets without us, or the config of a file.

    Raises:
        UsageError: The file is not a config for this host; there is no default for this kind of model.
        HostError: It needs a library that is not installed.
    """
    if path is not None:
        return read_baseline(path, host)
    if model.kind not in BASELINE_BACKENDS:
        raise UsageError(
            f"{model.source}: models of kind {model.kind} have no baseline yet; give --baseline CONFIG.json"
        )
    return Config(backend=BASELINE_BACKENDS[model.kind])


def read_baseline(path: str, host: Host) -> Config:
    """Read a config and check it as far as that needs no process.

    Raises:
        UsageError: Not a config, an unknown backend or session setting, a variable or library that is not allowed,
            more CPUs than `host` has, more than one instance.
        HostError: An allocator or OpenMP runtime that is not installed.
    """
    try:
        config = Config.from_json(Path(path).read_bytes(), source="config")
        check_backends((config.backend,))
        backend = cast("Backend", plugin("tuner.backends", config.backend))
        backend.SessionSettings.from_json_object(config.session, source="session")
        check_process(config.process, "the config")
        check_fit_of_process(config, host)
    except OSError as error:
        raise UsageError(f"--baseline {path}: cannot be read ({error.strerror})") from error
    except UsageError as error:
        raise UsageError(f"--baseline {path}: {error}") from error
    process = config.process
    for name, present in ((process.allocator, host.allocators), (process.openmp_runtime, host.openmp_runtimes)):
        if name is not None and name not in present:
            raise HostError(f"--baseline {path}: {libraries.absence(name)}")
    return config


def check_fit_of_process(config: Config, host: Host) -> None:
    """Refuse what no worker on `host` could be started with.

    Raises:
        UsageError: More than one instance, or a mask that the host does not have.
    """
    if config.instances > 1:
        raise UsageError(f"instances: {config.instances} asked for, but a baseline is one: leave it out")
    place, n_cpus = config.process.placement, len(host.allowed_cpus)
    if (place.n_cpus or 1) > n_cpus:  # also where no mask is set
        raise UsageError(f"process.placement: {place.n_cpus} CPUs asked for, but {n_cpus} are allowed; lower n_cpus")
    placement.resolve(place, host)


def fallback_config(space: ResolvedSpace, model: ModelFacts, baseline: Config) -> Config:
    """Return float32 on the whole CPU budget with the plainest engine: what a server runs where nothing else holds."""
    name = BASELINE_BACKENDS.get(model.kind, baseline.backend)
    backend = space.backends.get(name)
    if backend is None:
        return baseline
    defaults = {item.name: item.default for item in backend.parameters if item.default is not None}
    return space.to_config(space.complete({"backend": name, **defaults}))
