"""`autotune exec`: puts mask and environment of a profile in force, then becomes the command."""

import os
import shutil
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tuner.errors import UsageError


def exec_(
    profile: Annotated[Path, Parameter(help="the profile")],
    /,
    *command: Annotated[str, Parameter(help="the command and its arguments, after --", allow_leading_hyphen=True)],
) -> int:
    """Run a command with the CPUs, environment and allocator of a profile in force: `autotune exec P -- CMD …`."""
    from tuner.hardware.detection import detect
    from tuner.loading.files import read_profile
    from tuner.loading.launching import launch_settings

    if not command:
        raise UsageError("autotune exec P -- CMD: the command to run is missing")
    loaded = read_profile(profile)
    program = shutil.which(command[0])
    if program is None:
        raise UsageError(f"{command[0]}: no such program; the profile's settings were not applied")
    settings = launch_settings(loaded, detect(), os.environ)
    if settings.cpus is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, settings.cpus)
    os.execve(program, list(command), settings.environment)  # noqa: S606 - becoming the user's command is the duty here
