"""Does a profile hold here: fingerprint by field, model, artifacts, engines; it reads and compares, nothing more."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, cast

from tuner.artifacts.places import cache_directory
from tuner.backends.base import Backend
from tuner.errors import ProfileMismatch, TunerError
from tuner.hardware.compatibility import (
    CONSEQUENCES,
    Difference,
    Needs,
    compare_hosts,
    compare_software,
    strongest,
)
from tuner.hardware.detection import detect
from tuner.loading.adapting import ADAPTABLE, COUNTS, adapt, misfit
from tuner.loading.files import find_artifacts
from tuner.models.inspect import inspect
from tuner.models.sources import require_trust
from tuner.plugins import entry_points_of, installed_versions, plugin
from tuner.records.base import Record
from tuner.records.config import Config
from tuner.records.hardware import Host
from tuner.records.model import ModelFacts
from tuner.records.profile import Profile

THREAD_SETTINGS = ("threads", "intra_op_threads")
REDUCED = ("int8", "int4", "bf16", "f16", "bfloat16", "float16", "uint8", "qint8", "quint8")


class CheckResult(Record):
    """What differs from the profile and what follows.

    Attributes:
        holds: Nothing that refuses the profile or has it checked again.
        serves: What `tuner.load` with ``strict=False`` serves here: the ``best``, the best ``adapted`` to fewer CPUs,
            the ``fallback``, or ``nothing`` (the model is another one).
        differences: Strongest consequence first.
    """

    holds: bool
    serves: Literal["best", "adapted", "fallback", "nothing"]
    differences: tuple[Difference, ...]
    model_path: str | None = None


def check_profile(
    profile: Profile,
    path: Path,
    *,
    model: str | None = None,
    root: Path = Path("/"),
    affinity: str | None = None,
    cache_dir: str | None = None,
    trust_profile: bool = False,
    trust_code: bool = False,
) -> CheckResult:
    """Compare a profile with this host, these libraries, the model and the artifacts (whole digests)."""
    cache = cache_directory(cache_dir)
    differences = [*environment_differences(profile, detect(root, affinity))]
    facts, difference = model_difference(profile, path, model, cache, trust_code=trust_code)
    if difference is not None:
        differences.append(difference)
    elif model is not None and model != profile.model.source:
        text = "the same model in another place"
        differences.append(
            Difference(field="model.source", then=profile.model.source, now=model, consequence="ignore", detail=text)
        )
    try:
        find_artifacts(profile, (path.absolute().parent, cache), own=cache, trust_native=trust_profile)
    except TunerError as error:
        differences.append(Difference(field="artifact", then=None, now=None, consequence="refuse", detail=str(error)))
    differences.sort(key=lambda one: CONSEQUENCES.index(one.consequence))
    worst = strongest(differences)
    return CheckResult(
        holds=worst not in ("refuse", "fallback", "recheck"),
        serves=served(differences),
        differences=tuple(differences),
        model_path=facts.path if facts is not None else None,
    )


def served(differences: Iterable[Difference]) -> Literal["best", "adapted", "fallback", "nothing"]:
    """Return what loading without strict serves."""
    stopping = {one.field for one in differences if one.consequence in ("refuse", "fallback")}
    if stopping & {"model", "model.sha256"}:
        return "nothing"
    if stopping - ADAPTABLE:
        return "fallback"
    return "adapted" if stopping else "best"


def environment_differences(profile: Profile, host: Host) -> tuple[Difference, ...]:
    """Compare host and libraries with those the profile was made with; an unchanged fingerprint costs nothing."""
    needs = needs_of(profile.best.config, profile)
    found = [*compare_hosts(profile.hardware, host, needs), *process_differences(profile.best.config, host)]
    engine = profile.best.config.backend
    if engine not in entry_points_of("tuner.backends"):
        detail = f"no backend {engine!r} is installed here"
        found.append(Difference(field="backend", then=engine, now=None, consequence="refuse", detail=detail))
    else:
        found += config_differences(profile)
    now: dict[str, str] = {}
    for name in profile.software:
        now |= installed_versions(name) or {}
    found += compare_software(relevant_software(profile), now)
    return (*found, *newer_differences(profile))


def config_differences(profile: Profile) -> list[Difference]:
    """Return what keeps the best config from being opened anywhere: settings that its engine refuses, no artifact."""
    config, problems = profile.best.config, []
    try:
        backend = cast("Backend", plugin("tuner.backends", config.backend))
        backend.SessionSettings.from_json_object(config.session, source=f"backend {config.backend}")
    except TunerError as error:
        problems.append(str(error))
    if config.artifact and not profile.best.artifacts:
        problems.append(f"the profile names no file of its artifact {config.chain()}")
    return [Difference(field="best.config", then=None, now=None, consequence="refuse", detail=one) for one in problems]


def newer_differences(profile: Profile) -> list[Difference]:
    """Return the keys that a newer version wrote and this one does not know: those of the best config may matter."""
    found: list[Difference] = []
    for key in profile.newer_keys():
        is_asked = key.startswith("best.config.")
        detail = "this version does not know it and does not follow it" if is_asked else "this version does not read it"
        consequence: Literal["warn", "ignore"] = "warn" if is_asked else "ignore"
        found.append(Difference(field=key, then=None, now=None, consequence=consequence, detail=detail))
    return found


def process_differences(config: Config, host: Host) -> list[Difference]:
    """Return what the config's process settings ask for and this host lacks."""
    process, found = config.process, []
    unfit = misfit(process.placement, host)
    if unfit is not None and (process.placement.n_cpus or 1) <= host.cpu_budget:
        text = f"{unfit.removeprefix('process.placement: ')}; or run autotune retune"
        found.append(Difference(field="process.placement", then=None, now=None, consequence="refuse", detail=text))
    for name, reason in adapt(config, host).given_up.items():
        if name in ("process.allocator", "process.openmp_runtime", "process.memory_policy"):
            then = str(getattr(process, name.removeprefix("process.")))
            found.append(Difference(field=name, then=then, now=None, consequence="recheck", detail=reason))
    return found


def relevant_software(profile: Profile) -> Mapping[str, str]:
    """Return the libraries that the best config runs on, as its backend names them; others may change freely."""
    engine = profile.best.config.backend
    if engine not in entry_points_of("tuner.backends"):
        return {}
    names = cast("Backend", plugin("tuner.backends", engine)).installed()
    if names is None:
        return profile.software
    return {name: version for name, version in profile.software.items() if name in names}


def needs_of(config: Config, profile: Profile) -> Needs:
    """Return what a config needs of a host."""
    threads = [value for name in THREAD_SETTINGS if isinstance(value := config.session.get(name), int)]
    threads += [int(value) for name, value in config.process.env.items() if name in COUNTS]
    values = [str(value).lower() for value in config.session.values()]
    values += [str(value).lower() for step in config.artifact for value in step.settings.values()]
    is_reduced = any(word in text for text in (*values, config.chain().lower()) for word in REDUCED)
    return Needs(
        n_cpus=max([1, *threads, config.process.placement.n_cpus or 1]),
        peak_rss_bytes=profile.best.measurement.peak_rss_bytes,
        is_isa_bound=is_reduced,
        is_pinned=config.process.placement.policy != "none",
    )


def model_difference(
    profile: Profile, path: Path, model: str | None, cache: Path, *, trust_code: bool = False
) -> tuple[ModelFacts | None, Difference | None]:
    """Return the model's facts and what differs: moved is no difference, changed by one byte refuses.

    Raises:
        UsageError: The model runs code of its own, which is not trusted.
    """
    source = model or source_near(profile.model.source, path)
    require_trust(source, trust_code=trust_code)
    try:
        facts = inspect(source, profile.model.task, cache_dir=cache, allow_network=False, trust_code=trust_code)
    except TunerError as error:
        detail = f"{error}; say where the model is with --model or load(…, model=…)"
        return None, Difference(field="model", then=profile.model.source, now=None, consequence="refuse", detail=detail)
    if facts.sha256 != profile.model.sha256:
        detail = f"the model at {facts.path} is not the one the profile {path.name} was made for: tune again"
        return facts, Difference(
            field="model.sha256",
            then=profile.model.sha256[:16],
            now=facts.sha256[:16],
            consequence="refuse",
            detail=detail,
        )
    return facts, None


def source_near(source: str, path: Path) -> str:
    """Return the model's path as the profile at `path` names it, from its own directory where it is not below ours."""
    near = path.absolute().parent / source
    return str(near) if not Path(source).exists() and near.exists() else source


def refuse(result: CheckResult, path: Path) -> None:
    """Raise for what makes strict loading refuse.

    Raises:
        ProfileMismatch: The first field whose consequence is to refuse or to fall back.
    """
    for difference in result.differences:
        if difference.consequence in ("refuse", "fallback"):
            raise ProfileMismatch(
                f"{path.name} does not hold here: {difference.field}: {difference.detail} "
                "(load(…, strict=False) serves what still can; `autotune check` shows all)"
            )
