"""Finds the engines, build steps and space files that a run may use on this host; it starts none of them."""

import contextlib
from collections.abc import Iterable
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import cast

from tuner.backends.base import Backend
from tuner.compare.rig import COMPILED_WARM_CAP_S, WARM_CAP_S
from tuner.errors import HostError, UsageError
from tuner.models.inspect import inspect
from tuner.plugins import entry_points_of, plugin, space_file, too_old
from tuner.records.config import Config
from tuner.records.hardware import Host
from tuner.records.measurement import Notice
from tuner.records.model import ModelFacts
from tuner.records.workload import Workload
from tuner.space.facts import facts_of_host, facts_of_model, facts_of_workload
from tuner.space.loading import load_space
from tuner.space.naming import did_you_mean
from tuner.space.resolved import ResolvedSpace
from tuner.space.space import SearchSpace
from tuner.steps.base import Step
from tuner.study.building import library_versions

DISTRIBUTION = "autotune-cpu"
HIDDEN_BACKENDS = frozenset({"fake"})


def check_backends(names: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the backends to consider.

    Raises:
        UsageError: A name that is no backend; the nearest one is named.
    """
    known = tuple(entry_points_of("tuner.backends"))
    if names is None:
        return tuple(name for name in known if name not in HIDDEN_BACKENDS)
    if not names:
        raise UsageError(f"--backends names none: choose from {', '.join(known)}")
    for name in names:
        if name not in known:
            raise UsageError(f"unknown backend {name!r}: {did_you_mean(name, known)}")
    return tuple(dict.fromkeys(names))


def usable_backends(
    names: tuple[str, ...], model: ModelFacts, workload: Workload, *, explicit: bool
) -> tuple[list[str], dict[str, str], list[Notice]]:
    """Return the backends that are installed and take the model, all library versions, and a notice for each other.

    Raises:
        HostError: A backend that the user named is not installed or does not take the model, or none is left.
    """
    usable: list[str] = []
    versions = library_versions()
    notices: list[Notice] = []
    for name in names:
        installed, reason, remedy = availability(name, model, workload)
        if reason is None:
            usable.append(name)
            versions |= installed or {}
        elif explicit:
            way_out = f"; or {remedy}" if remedy else ""
            raise HostError(f"backend {name}: {reason}: leave it out of --backends{way_out}")
        else:
            notices.append(
                Notice(
                    code="backend_unavailable",
                    detail=f"{name}: {reason}",
                    remedy=remedy,
                )
            )
    if not usable:
        raise HostError(f"no engine can run {model.source}: {'; '.join(notice.detail for notice in notices)}")
    return usable, versions, notices


def availability(
    name: str, model: ModelFacts, workload: Workload
) -> tuple[dict[str, str] | None, str | None, str | None]:
    """Return an engine's versions, why it cannot be used (None: it can) and what would help; no library is opened."""
    try:
        backend = cast("Backend", plugin("tuner.backends", name))
        installed = backend.installed()
    except UsageError as error:
        return None, str(error), None
    if installed is None:
        return None, "not installed", f"pip install '{DISTRIBUTION}[all]'"
    return installed, too_old(installed) or backend.supports(model, workload), None


def declared_space(backends: Iterable[str], files: Iterable[str]) -> SearchSpace:
    """Load the spaces of these backends, of all steps, of the process, and the user's files.

    Raises:
        UsageError: A file is wrong, or offers a setting that can change outputs without saying so: configurations would
            then share a fidelity that was measured on other outputs. A backend names such settings: ``numerics``.
    """
    backends = tuple(backends)
    sources: list[Traversable | Path] = [cast("Backend", plugin("tuner.backends", name)).space() for name in backends]
    sources += [step.space() for step in all_steps()]
    space = load_space([*sources, space_file("process.toml"), *(space_path(name) for name in files)])
    for name in backends:
        changing = {f"session.{key}" for key in getattr(plugin("tuner.backends", name), "numerics", ())}
        for parameter in space.backends[name].parameters:
            if parameter.name in changing and not parameter.numerics:
                raise UsageError(f"backend {name}: {parameter.name} can change outputs: add numerics = true to it")
    return space


def all_steps() -> list[Step]:
    """Return every installed build step that can be imported; a chain of a broken one is refused by name."""
    found = []
    for name in entry_points_of("tuner.steps"):
        with contextlib.suppress(UsageError):
            found.append(cast("Step", plugin("tuner.steps", name)))
    return found


def dropped_steps(kind: str) -> list[str]:
    """Return the steps whose output the source already is."""
    return [step.name for step in all_steps() if getattr(step, "output", None) == kind]


def missing_steps() -> dict[str, str]:
    """Return the steps whose libraries are not installed, with the way out (a step names its ``extra``)."""
    found = {}
    for step in all_steps():
        versions: dict[str, str] | None = getattr(step, "installed", dict)()
        if versions is None:
            found[step.name] = f"pip install '{DISTRIBUTION}[{getattr(step, 'extra', 'all')}]'"
        elif (reason := too_old(versions)) is not None:
            found[step.name] = reason
    return found


def is_installed(name: str) -> bool:
    """Say whether an engine is installed and its plug-in can be imported."""
    try:
        return cast("Backend", plugin("tuner.backends", name)).installed() is not None
    except UsageError:
        return False


def warm_cap_s(config: Config) -> float:
    """Return the most seconds of warm-up: more where the engine compiles in its first calls (``compiled``)."""
    compiles = getattr(plugin("tuner.backends", config.backend), "compiled", None)
    return COMPILED_WARM_CAP_S if compiles is not None and compiles(config.session) else WARM_CAP_S


def resolve_space(
    host: Host,
    *,
    model: str | None,
    backends: tuple[str, ...] | None,
    files: tuple[str, ...],
    cache_dir: Path,
    trust_code: bool = False,
) -> ResolvedSpace:
    """Return the space as it is on this host, for a model or for any (what depends on the model is then unknown)."""
    names = check_backends(backends)
    facts = None
    if model is not None:
        facts = inspect(model, None, cache_dir=cache_dir, allow_network=False, trust_code=trust_code)
    workload = Workload(task=facts.task if facts is not None else "feature-extraction")
    installed = [name for name in names if is_installed(name)]
    return declared_space(installed, files).resolve(
        facts_of_host(host),
        facts_of_model(facts) if facts is not None else {},
        facts_of_workload(workload),
        dropped_steps=dropped_steps(facts.kind) if facts is not None else (),
        missing_steps=missing_steps(),
        backends=installed,
    )


def space_path(name: str) -> Path:
    """Return a user's space file.

    Raises:
        UsageError: No such file.
    """
    path = Path(name)
    if not path.is_file():
        raise UsageError(f"--space {name}: no such file")
    return path
