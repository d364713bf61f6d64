"""What must be in force before a program starts for a profile to hold in it: mask, environment, preloaded libraries."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tuner.environment import exec_environment
from tuner.errors import ProfileMismatch
from tuner.hardware import libraries, placement
from tuner.records.config import Config
from tuner.records.hardware import Host
from tuner.records.profile import Profile


@dataclass(frozen=True)
class LaunchSettings:
    """Mask (None: as inherited) and whole environment for a program."""

    cpus: tuple[int, ...] | None
    environment: dict[str, str]


def launch_settings(profile: Profile, host: Host, environ: Mapping[str, str]) -> LaunchSettings:
    """Return what `autotune exec` puts in force.

    Raises:
        ProfileMismatch: An allocator or OpenMP runtime of the profile is not installed here.
        UsageError: The mask does not fit on this host, or the profile asks for a variable that is not allowed.
    """
    process = profile.best.config.process
    preload = []
    for name in (process.allocator, process.openmp_runtime):
        if name is not None:
            path = libraries.find(name)
            if path is None:
                raise ProfileMismatch(
                    f"{name} of the profile is not in a system library folder: install it, or tune again"
                )
            preload.append(path)
    pinned = process.placement.policy != "none" and host.is_pinning_available
    return LaunchSettings(
        cpus=placement.resolve(process.placement, host) if pinned else None,
        environment=exec_environment(environ, process, preload=preload),
    )


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
    for field, library in (("allocator", config.process.allocator), ("openmp_runtime", config.process.openmp_runtime)):
        if library is not None and not is_mapped(library, text):
            missing[f"process.{field}"] = f"{library} must be preloaded before the program starts"
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
