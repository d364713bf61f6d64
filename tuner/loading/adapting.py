"""Makes a config fit a smaller host: fewer threads, a smaller mask, no library that is missing; it judges no speed."""

from typing import NamedTuple

from tuner.errors import UsageError
from tuner.hardware import libraries, placement
from tuner.records.base import Scalar
from tuner.records.config import Config, Placement, ProcessSettings
from tuner.records.hardware import Host

ADAPTABLE = frozenset({"cpu_budget", "process.placement"})
"""Fields whose refusal leaves the best config servable with fewer CPUs."""
COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS")
"""Variables that count threads."""
_STREAMS = ("streams", "num_streams")


class Adapted(NamedTuple):
    """A config that fits, and what it had to give up, with the reason, by name."""

    config: Config
    given_up: dict[str, str]


def adapt(config: Config, host: Host) -> Adapted:
    """Return `config` with threads, mask, libraries and memory policy reduced to what `host` grants; else unchanged."""
    given_up: dict[str, str] = {}
    process = config.process
    place = _placement(process.placement, host, given_up)
    granted = host.cpu_budget
    if place != process.placement:
        granted = min(granted, place.n_cpus or granted)
    env = {
        name: _count(f"process.env.{name}", value, granted, host, given_up) if name in COUNTS else value
        for name, value in process.env.items()
    }
    session = {name: _threads(name, value, granted, host, given_up) for name, value in config.session.items()}
    preloaded = {
        "allocator": _library("allocator", process.allocator, host.allocators, given_up),
        "openmp_runtime": _library("openmp_runtime", process.openmp_runtime, host.openmp_runtimes, given_up),
    }
    policy = process.memory_policy
    if policy != "none" and host.is_memory_policy_permitted is False:
        given_up["process.memory_policy"] = f"{policy}: the kernel does not permit memory policies here"
        policy = "none"
    changed = ProcessSettings(placement=place, memory_policy=policy, env=env, **preloaded)
    return Adapted(config.model_copy(update={"session": session, "process": changed}), given_up)


def misfit(place: Placement, host: Host) -> str | None:
    """Return why a placement does not fit on `host`, None if it does or sets no mask."""
    if place.policy == "none" or not host.is_pinning_available:
        return None
    try:
        placement.resolve(place, host)
    except UsageError as error:
        return str(error)
    return None


def _placement(place: Placement, host: Host, given_up: dict[str, str]) -> Placement:
    """Return the nearest placement that fits: fewer CPUs first, then a wider scope, then any kind of core."""
    wanted = place
    if place.n_cpus is not None and place.n_cpus > host.cpu_budget:
        place = place.model_copy(update={"n_cpus": host.cpu_budget})
    wider = place.model_copy(update={"scope": "all"})
    for tried in (place, wider, wider.model_copy(update={"core_class": None})):
        if misfit(tried, host) is None:
            place = tried
            break
    if place != wanted:
        given_up["process.placement"] = (
            f"{_phrase(wanted)} asked, {_phrase(place)} in its place: {host.cpu_budget} CPUs are granted here "
            f"(bound by {host.bound_by})"
        )
    return place


def _phrase(place: Placement) -> str:
    """Return a placement as words."""
    kind = f" {place.core_class}" if place.core_class else ""
    return f"{'every' if place.n_cpus is None else place.n_cpus}{kind} CPU of scope {place.scope}"


def _threads(name: str, value: Scalar, granted: int, host: Host, given_up: dict[str, str]) -> Scalar:
    """Return a session setting, cut to the granted CPUs if it counts threads or streams."""
    counts = name.endswith("threads") or name in _STREAMS
    if not counts or isinstance(value, bool) or not isinstance(value, int) or value <= granted:
        return value
    given_up[f"session.{name}"] = f"{value} asked, {granted} granted (bound by {host.bound_by})"
    return granted


def _count(name: str, value: str, granted: int, host: Host, given_up: dict[str, str]) -> str:
    """Return a variable that counts threads, cut to the granted CPUs."""
    if int(value) <= granted:
        return value
    given_up[name] = f"{value} asked, {granted} granted (bound by {host.bound_by})"
    return str(granted)


def _library(field: str, name: str | None, found: tuple[str, ...], given_up: dict[str, str]) -> str | None:
    """Return a library's name if it is installed."""
    if name is None or name in found:
        return name
    given_up[f"process.{field}"] = f"{libraries.absence(name)}, or tune again"
    return None
