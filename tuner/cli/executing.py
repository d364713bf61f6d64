"""`autotune exec` and `autotune env`: mask, memory nodes and environment of a profile, for a program to start with."""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from tuner.cli.streams import say
from tuner.errors import UsageError

if TYPE_CHECKING:
    from tuner.loading.launching import LaunchSettings
    from tuner.records.profile import Profile


def exec_(
    profile: Annotated[Path, Parameter(help="the profile")],
    /,
    *command: Annotated[str, Parameter(help="the command and its arguments, after --", allow_leading_hyphen=True)],
    adapt: Annotated[
        bool, Parameter(negative="", help="run with fewer CPUs or without a library where this host lacks them")
    ] = False,
    trust_code: Annotated[bool, Parameter(negative="", help="the command may run the code of a py: model")] = False,
) -> int:
    """Run a command with the CPUs, environment and allocator of a profile in force: `autotune exec P -- CMD …`.

    The settings hold before the program starts, and in all that it starts. Exit code 5 where they do not fit here.
    """
    from tuner.hardware.detection import detect
    from tuner.loading.files import read_profile
    from tuner.loading.launching import launch_settings, take_position
    from tuner.models.sources import require_trust

    if not command:
        raise UsageError("autotune exec P -- CMD: the command to run is missing")
    loaded = read_profile(profile)
    program = shutil.which(command[0])
    if program is None:
        raise UsageError(f"{command[0]}: no such program; the profile's settings were not applied")
    require_trust(loaded.model.source, trust_code=trust_code)
    settings = launch_settings(loaded, detect(), os.environ, allow_adapting=adapt)
    say_what_is_left_out(loaded, settings)
    take_position(settings)
    try:
        os.execve(program, list(command), settings.environment)  # noqa: S606 - becoming the user's command is the duty
    except OSError as error:
        raise UsageError(f"{program} cannot be started: {error.strerror}") from error


def env(
    profile: Annotated[Path, Parameter(help="the profile")],
    /,
    *,
    format: Annotated[  # noqa: A002 - the option's name
        Literal["shell", "docker", "systemd", "k8s", "json"], Parameter(help="what the settings are written for")
    ] = "shell",
    adapt: Annotated[
        bool, Parameter(negative="", help="fewer CPUs, or without a library, where this host lacks them")
    ] = False,
) -> int:
    """Print the settings that `autotune exec` would put in force, for another launcher.

    shell: `eval "$(autotune env P)"`; docker: options of `docker run`; systemd: a drop-in; k8s: part of a container.
    """
    from tuner.hardware.detection import detect
    from tuner.loading.files import read_profile
    from tuner.loading.launchers import render_launcher
    from tuner.loading.launching import launch_settings

    loaded = read_profile(profile)
    settings = launch_settings(loaded, detect(), os.environ, allow_adapting=adapt)
    say_what_is_left_out(loaded, settings)
    sys.stdout.write(render_launcher(format, settings))
    return 0


def say_what_is_left_out(profile: "Profile", settings: "LaunchSettings") -> None:
    """Say on standard error what was adapted, and which settings of a newer version are not followed, a line each."""
    from tuner.loading.checking import newer_differences

    for name, reason in settings.given_up.items():
        say(f"autotune: adapted: {name}: {reason}")
    for one in newer_differences(profile):
        if one.consequence == "warn":
            say(f"autotune: {one.field}: {one.detail}")
