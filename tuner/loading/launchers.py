"""Writes launch settings for shells, Docker, systemd, Kubernetes and programs; it puts none of them in force."""

import json
import shlex
from typing import Literal

from tuner.environment import allowed_names
from tuner.hardware.memory_policy import parse_policy
from tuner.loading.launching import LaunchSettings

Launcher = Literal["shell", "docker", "systemd", "k8s", "json"]

_PINNING = ("GOMP_CPU_AFFINITY", "KMP_DUPLICATE_LIB_OK", "OMP_DISPLAY_ENV")
"""Variables that no config may set and that would undo one, beside those it may set."""


def render_launcher(launcher: Launcher, settings: LaunchSettings) -> str:
    """Return the settings in a launcher's words, ending with a line break."""
    writers = {"shell": _shell, "docker": _docker, "systemd": _systemd, "k8s": _kubernetes, "json": _json}
    return writers[launcher](settings)


def unset_names(settings: LaunchSettings) -> list[str]:
    """Return the variables that must not be set, since they would change what the config leaves at its default."""
    return sorted({*allowed_names(), *_PINNING} - settings.asked.keys())


def _shell(settings: LaunchSettings) -> str:
    """Return POSIX shell for ``eval``: the mask and the variables hold for this shell and what it starts."""
    lines = [f"unset {' '.join(unset_names(settings))}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(settings.asked.items())]
    if settings.cpus is not None:
        lines.append(f"taskset -cp {_list(settings.cpus)} $$ >/dev/null")
    if settings.memory_policy is not None:
        lines.append(f"# memory policy {settings.memory_policy}: a shell cannot set it; {_numactl(settings)} CMD")
    return "\n".join(lines) + "\n"


def _docker(settings: LaunchSettings) -> str:
    """Return options of ``docker run``, one a line with a backslash, for this host's CPU ids."""
    words = [] if settings.cpus is None else [f"--cpuset-cpus={_list(settings.cpus)}"]
    if settings.memory_policy is not None:
        nodes = parse_policy(settings.memory_policy).nodes
        words += [f"--cpuset-mems={_list(nodes)}", "--cap-add=SYS_NICE"]
    words += [f"--env={shlex.quote(f'{name}={value}')}" for name, value in sorted(settings.asked.items())]
    return " \\\n".join(words) + "\n" if words else "\n"


def _systemd(settings: LaunchSettings) -> str:
    """Return a drop-in for a service unit (systemd.exec(5))."""
    lines = ["[Service]"]
    if settings.cpus is not None:
        lines.append(f"CPUAffinity={' '.join(map(str, settings.cpus))}")
    if settings.memory_policy is not None:
        policy = parse_policy(settings.memory_policy)
        lines += [f"NUMAPolicy={policy.mode}", f"NUMAMask={_list(policy.nodes)}"]
    for name, value in sorted(settings.asked.items()):
        text = f"{name}={value}".replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
        lines.append(f'Environment="{text}"')
    lines.append(f"UnsetEnvironment={' '.join(unset_names(settings))}")
    return "\n".join(lines) + "\n"


def _kubernetes(settings: LaunchSettings) -> str:
    """Return part of a container: exclusive CPUs need the static CPU manager and equal requests and limits."""
    lines = ["env:" if settings.asked else "env: []"]
    for name, value in sorted(settings.asked.items()):
        lines += [f"- name: {json.dumps(name)}", f"  value: {json.dumps(value)}"]
    if settings.cpus is not None:
        count = json.dumps(str(len(settings.cpus)))
        lines += [
            "resources:  # whole CPUs, requests equal to limits: the static CPU manager grants a mask of this size"
        ]
        lines += [f"  {kind}: {{cpu: {count}}}" for kind in ("requests", "limits")]
    if settings.memory_policy is not None:
        lines.append(
            f"# memory policy {settings.memory_policy}: start the program with `autotune exec` in the container"
        )
    return "\n".join(lines) + "\n"


def _json(settings: LaunchSettings) -> str:
    """Return one JSON document."""
    policy = parse_policy(settings.memory_policy) if settings.memory_policy is not None else None
    document = {
        "cpus": None if settings.cpus is None else list(settings.cpus),
        "env": dict(sorted(settings.asked.items())),
        "unset": unset_names(settings),
        "memory_policy": "none" if policy is None else policy.mode,
        "memory_nodes": [] if policy is None else list(policy.nodes),
        "not_applied": settings.given_up,
    }
    return json.dumps(document, indent=1) + "\n"


def _numactl(settings: LaunchSettings) -> str:
    assert settings.memory_policy is not None
    policy = parse_policy(settings.memory_policy)
    option = {"bind": "--membind", "interleave": "--interleave"}[policy.mode]
    return f"numactl {option}={_list(policy.nodes)}"


def _list(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))
