"""What must be in force before a program starts for a profile to hold in it: mask, memory nodes, environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tuner.environment import config_environment, exec_environment
from tuner.errors import ProfileMismatch
from tuner.hardware import libraries, placement
from tuner.hardware.memory_policy import parse_policy, read_policy, set_policy
from tuner.loading.adapting import adapt, misfit
from tuner.records.config import Config
from tuner.records.hardware import Host
from tuner.records.profile import Profile

_WAY_OUT = "--adapt runs with what is granted, autotune retune finds what is best here"


@dataclass(frozen=True)
class LaunchSettings:
    """What a program is started with.

    Attributes:
        cpus: Mask; None: as inherited.
        environment: The whole environment.
        asked: Only the variables that the config asks for, LD_PRELOAD included.
        memory_policy: ``bind:NODES`` or ``interleave:NODES``, None for the system's own.
        given_up: Settings that do not fit here, with the reason, by name; empty unless adapting was allowed.
    """

    cpus: tuple[int, ...] | None
    environment: dict[str, str]
    asked: dict[str, str] = field(default_factory=dict)
    memory_policy: str | None = None
    given_up: dict[str, str] = field(default_factory=dict)


def launch_settings(
    profile: Profile, host: Host, environ: Mapping[str, str], *, allow_adapting: bool = False
) -> LaunchSettings:
    """Return what `autotune exec` puts in force.

    Raises:
        ProfileMismatch: The host grants fewer CPUs than the config needs, or lacks a library or the memory policy, and
            adapting is not allowed.
        UsageError: The profile asks for a variable that is not allowed.
    """
    config = profile.best.config
    adapted = adapt(config, host)
    if allow_adapting:
        config = adapted.config
    else:
        refuse_misfit(config, host, adapted.given_up)
    process = config.process
    names = [name for name in (process.allocator, process.openmp_runtime) if name is not None]
    preload = [path for path in (libraries.find(name) for name in names) if path is not None]
    pinned = process.placement.policy != "none" and host.is_pinning_available
    return LaunchSettings(
        cpus=placement.resolve(process.placement, host) if pinned else None,
        environment=exec_environment(environ, process, preload=preload),
        asked=config_environment(process, preload),
        memory_policy=placement.memory_policy_text(process, host),
        given_up=adapted.given_up if allow_adapting else {},
    )


def refuse_misfit(config: Config, host: Host, given_up: Mapping[str, str]) -> None:
    """Refuse a config that this host cannot take as it is.

    Raises:
        ProfileMismatch: Names what is asked and what is granted.
    """
    for library in (config.process.allocator, config.process.openmp_runtime):
        if library is not None and libraries.find(library) is None:
            raise ProfileMismatch(f"{libraries.absence(library)}, or tune again")
    unfit = misfit(config.process.placement, host)
    if unfit is not None:
        raise ProfileMismatch(f"{unfit.partition(';')[0]}; {_WAY_OUT}")
    for name, reason in given_up.items():
        raise ProfileMismatch(f"{name}: {reason}; {_WAY_OUT}")


def take_position(settings: LaunchSettings) -> None:
    """Put mask and memory policy in force for this process and whatever it starts, and read them back.

    Raises:
        ProfileMismatch: The kernel refuses one of them.
    """
    try:
        if settings.cpus is not None:
            os.sched_setaffinity(0, settings.cpus)
            found = os.sched_getaffinity(0)
            if found != set(settings.cpus):
                raise ProfileMismatch(f"mask {list(settings.cpus)} is not in force, {sorted(found)} is; {_WAY_OUT}")
        if settings.memory_policy is not None:
            set_policy(parse_policy(settings.memory_policy))
    except OSError as error:
        raise ProfileMismatch(f"mask or memory policy: {error.strerror}; {_WAY_OUT}") from error


def came_too_late(config: Config, host: Host, environ: Mapping[str, str], maps: str | None = None) -> dict[str, str]:
    """Return the process settings of `config` that are not in force in this process, with the reason, by name."""
    missing: dict[str, str] = {}
    place = config.process.placement
    if place.policy != "none":
        if not host.is_pinning_available:
            missing["process.placement"] = "this system cannot pin a process to CPUs"
        elif len(os.sched_getaffinity(0)) != len(placement.resolve(place, host)):
            missing["process.placement"] = "the mask must be set before the program starts"
    for name, value in config.process.env.items():
        if environ.get(name) != value:
            missing[f"process.env.{name}"] = f"{name}={value} must be set before the program starts"
    text = maps if maps is not None else read_maps()
    for kind, library in (("allocator", config.process.allocator), ("openmp_runtime", config.process.openmp_runtime)):
        if library is not None and not is_mapped(library, text):
            missing[f"process.{kind}"] = f"{library} must be preloaded before the program starts"
    policy = placement.memory_policy_text(config.process, host)
    if policy is not None and read_policy() != parse_policy(policy):
        missing["process.memory_policy"] = f"{policy} must be set before the program starts"
    return missing


def is_mapped(library: str, maps: str) -> bool:
    """Say whether a library is in the text of /proc/PID/maps, under the file name that its name stands for here."""
    path = libraries.find(library)
    stem = Path(path).name.partition(".so")[0] if path is not None else f"lib{library}"
    return f"/{stem}.so" in maps


def read_maps() -> str:
    """Return /proc/self/maps, empty where there is none."""
    try:
        return Path("/proc/self/maps").read_text()
    except OSError:
        return ""
