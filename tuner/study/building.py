"""Makes what trials need before anything is timed: the prepared workload and artifact chains, each once, in workers."""

import re
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import cast

from tuner.artifacts.store import Manifest, Store
from tuner.errors import HostError, TrialError, UsageError
from tuner.messages import Build, Built, Prepare, PreparedFiles
from tuner.plugins import plugin
from tuner.records.base import digest_of
from tuner.records.config import Config, ProcessSettings, StepSettings
from tuner.records.measurement import Failure
from tuner.records.model import ModelFacts, Prepared
from tuner.records.workload import Metric, Workload
from tuner.runner.process import WorkerProcess
from tuner.steps.base import Step
from tuner.study.build_times import BuildTimes

PREPARE_LIMIT_S = 1800.0
BUILD_LIMIT_S = 900.0
LIBRARIES = ("torch", "transformers", "tokenizers", "onnx", "onnxscript", "onnxruntime", "openvino", "numpy")
TRANSIENT = frozenset({"not_applied"})
FULL = re.compile(r"\bOSError: \[Errno|No space left on device|Disk quota exceeded|File too large")
"""How workers tell of a disk that is full; it says nothing of the model or the step."""

Spawn = Callable[[ProcessSettings, str], tuple[WorkerProcess, tuple[int, ...]]]


def library_versions(names: tuple[str, ...] = LIBRARIES) -> dict[str, str]:
    """Return the versions of the installed ones of `names`, from metadata."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


class Workshop:
    """Builds into a store through workers.

    Args:
        store: Where things are kept.
        spawn: Starts a worker for a name (the runner's).
        model: The model.
        on_build: Told the name of what is being built, and when it is done its seconds.
        isa: Flags of this CPU, which belong to the key of native code.
    """

    def __init__(
        self,
        *,
        store: Store,
        spawn: Spawn,
        model: ModelFacts,
        on_build: Callable[[str, float | None], None],
        build_limit_s: float = BUILD_LIMIT_S,
        isa: tuple[str, ...] = (),
    ) -> None:
        self.store = store
        self.spawn = spawn
        self.model = model
        self.on_build = on_build
        self.build_limit_s = build_limit_s
        self.isa = isa
        self.prepared: Path | None = None
        self.build_s = 0.0
        self._times: BuildTimes | None = None

    def prepare(
        self,
        workload: Workload,
        data: str | None,
        *,
        max_samples: int,
        sample_budget_s: float,
        metric: Metric | None = None,
        code_dir: str | None = None,
        allow_network: bool = False,
        trust_remote_code: bool = False,
    ) -> Prepared:
        """Return the prepared workload, made in a worker or found in the store.

        Raises:
            UsageError: The model or the data cannot be used; says which file.
            HostError: The worker died, or none starts.
        """
        made_of: dict[str, object] = {
            "what": "prepared",
            "model": self.model.sha256,
            "path": self.model.path,  # stands in prepared.json, where workers read it
            "task": self.model.task,
            "pooling": self.model.pooling.model_dump(mode="json") if self.model.pooling else None,
            "workload": workload.model_dump(mode="json"),
            "max_samples": max_samples,
            "sample_budget_s": sample_budget_s,
            "versions": library_versions(),
        }
        if metric is not None:
            made_of |= {"metric": metric.model_dump(mode="json"), "code": code_dir if metric.is_code else None}
        key = digest_of(made_of)
        with self.store.locked(key):
            if self.store.find(key) is None:
                with self.store.building(key) as directory:
                    command = Prepare(
                        model=self.model,
                        workload=workload,
                        data=None if data is None else str(Path(data).expanduser().absolute()),  # it works elsewhere
                        directory=str(directory),
                        max_samples=max_samples,
                        sample_budget_s=sample_budget_s,
                        metric=metric,
                        code_dir=code_dir if metric is not None and metric.is_code else None,
                        allow_network=allow_network,
                        trust_remote_code=trust_remote_code,
                    )
                    start = time.monotonic()
                    self.on_build("inputs and float32 reference", None)
                    self._prepare_in_worker(command)
                    taken_s = time.monotonic() - start
                    self.build_s += taken_s
                    self.store.put(key, made_of, directory, taken_s)
                    self.on_build("inputs and float32 reference", taken_s)
        self.prepared = self.store.path(key)
        text = (self.prepared / "prepared.json").read_bytes()
        return Prepared.from_json(text, source=str(self.prepared / "prepared.json"))

    def _prepare_in_worker(self, command: Prepare) -> None:
        try:
            worker, _ = self.spawn(ProcessSettings(), "prepare")
        except TrialError as error:
            raise HostError(f"no worker runs here ({error}): see `autotune doctor`") from error
        try:
            worker.ask(command, PreparedFiles, limit_s=PREPARE_LIMIT_S)
        except TrialError as error:
            if FULL.search(error.message):
                raise HostError(
                    f"preparing the workload: {error.message}: free space or name another --cache-dir"
                ) from error
            if error.kind in ("error", "unsupported", "incorrect"):
                raise UsageError(error.message) from error
            if error.kind == "out_of_memory":
                raise UsageError(
                    f"model too large for memory: {self.model.weight_bytes / 2**30:.1f} GiB of weights ran out of it "
                    f"({error.message}); give the container more memory or choose a smaller model"
                ) from error
            raise HostError(f"preparing the workload failed: {error.message}; see {worker.log}") from error
        finally:
            worker.close()

    def keys(self, chain: tuple[StepSettings, ...]) -> list[tuple[str, dict[str, object]]]:
        """Return the key of every prefix of a chain and what it is made of."""
        found = []
        for length in range(1, len(chain) + 1):
            made_of: dict[str, object] = {
                "what": "artifact",
                "model": self.model.sha256,
                "task": self.model.task,
                "chain": [step.model_dump(mode="json") for step in chain[:length]],
                "versions": library_versions(step_libraries(chain[:length])),
                "prepared": self.prepared.name if self.prepared and uses_data(chain[:length]) else None,
            }
            if holds_native_code(chain[:length]):
                made_of["isa"] = list(self.isa)
            found.append((digest_of(made_of), made_of))
        return found

    def is_built(self, config: Config) -> bool:
        """Say whether opening `config` needs no build."""
        keys = self.keys(config.artifact)
        return not keys or self.store.find(keys[-1][0]) is not None

    def expected_s(self, config: Config) -> float:
        """Return the seconds of the builds that opening `config` needs: 0 where all is there or is known to fail."""
        if self._times is None:
            self._times = BuildTimes(self.model, self.store.manifests())
        total_s = 0.0
        for (key, _), step in zip(self.keys(config.artifact), config.artifact, strict=True):
            if self.store.find(key) is None:
                if self.store.failure(key) is not None:
                    return total_s
                total_s += self._times.expected_s(step.step)
        return total_s

    def artifact_of(self, config: Config) -> Path:
        """Return the directory to open, built before; the model's source where nothing is built.

        Raises:
            TrialError: It is not in the store.
        """
        keys = self.keys(config.artifact)
        if not keys:
            return Path(self.model.path)
        if self.store.find(keys[-1][0]) is None:
            raise TrialError("load", "error", f"the artifact {config.chain()} is not built")
        return self.store.path(keys[-1][0])

    def manifest(self, config: Config) -> Manifest | None:
        """Return the manifest of the artifact of `config`, None if nothing is built for it."""
        keys = self.keys(config.artifact)
        return self.store.find(keys[-1][0]) if keys else None

    def ensure(self, config: Config) -> float:
        """Build what `config` needs and the store lacks; return the seconds it took.

        Raises:
            TrialError: A step failed, now or in an earlier run.
        """
        start = time.monotonic()
        built: dict[str, Path] = {}
        worked = False
        for position, (key, made_of) in enumerate(self.keys(config.artifact)):
            step = config.artifact[position]
            with self.store.locked(key):
                if self.store.find(key) is None:
                    failure = self.store.failure(key)
                    if failure is not None:
                        raise TrialError(failure.stage, failure.kind, failure.message)
                    worked = True
                    self._build(key, made_of, step, built)
            built[step.step] = self.store.path(key)
        taken_s = time.monotonic() - start if worked else 0.0
        self.build_s += taken_s
        return taken_s

    def _build(self, key: str, made_of: dict[str, object], step: StepSettings, built: Mapping[str, Path]) -> None:
        """Run one step in a worker of its own and put the result in place, or remember why not."""
        inputs = {"source": self.model.path, **{name: str(path) for name, path in built.items()}}
        if self.prepared is not None:
            inputs["prepared"] = str(self.prepared)
        label = f"{step.step} {' '.join(f'{name}={value}' for name, value in step.settings.items())}".strip()
        self.on_build(label, None)
        with self.store.building(key) as directory:
            try:
                worker, _ = self.spawn(ProcessSettings(), f"build-{step.step}-{key[:8]}")
                try:
                    command = Build(step=step.step, settings=step.settings, inputs=inputs, directory=str(directory))
                    done = worker.ask(command, Built, limit_s=self.build_limit_s)
                finally:
                    worker.close()
                manifest = self.store.put(key, made_of, directory, done.build_s, weight_bytes=self.model.weight_bytes)
                if self._times is not None:
                    self._times.note(manifest)
            except TrialError as error:
                failure = Failure(stage="build", kind=error.kind, message=f"{step.step}: {error.message}")
                if error.kind not in TRANSIENT and not FULL.search(error.message):
                    self.store.remember_failure(key, failure)
                raise TrialError("build", error.kind, failure.message) from error
            except HostError as error:
                raise TrialError("build", "error", str(error)) from error
        self.on_build(label, manifest.build_s)


def step_libraries(chain: tuple[StepSettings, ...]) -> tuple[str, ...]:
    """Return the distributions whose versions belong to the key of a chain; a step names them in ``distributions``."""
    names: list[str] = []
    for step in chain:
        names += getattr(plugin("tuner.steps", step.step), "distributions", LIBRARIES)
    return tuple(sorted(set(names)))


def uses_data(chain: tuple[StepSettings, ...]) -> bool:
    """Say whether a step's output depends on the prepared data (``uses_data = True``), as calibration does."""
    return any(bool(getattr(cast("Step", plugin("tuner.steps", step.step)), "uses_data", False)) for step in chain)


def holds_native_code(chain: tuple[StepSettings, ...]) -> bool:
    """Say whether a step writes code for this CPU (``native = True``), as ahead-of-time compiling does."""
    return any(bool(getattr(plugin("tuner.steps", step.step), "native", False)) for step in chain)
