"""`autotune check`: does a profile hold on this host, with these libraries and this model; it changes nothing."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def check(
    profile: Annotated[Path, Parameter(help="the profile")],
    /,
    *,
    model: Annotated[str | None, Parameter(help="where the model is now, if it moved")] = None,
    json: Annotated[bool, Parameter(negative="", help="print one JSON document")] = False,
    trust_code: Annotated[bool, Parameter(negative="", help="run the code of a py: model")] = False,
    root: Annotated[Path, Parameter(help="read /sys and /proc below this directory")] = Path("/"),
    affinity: Annotated[str | None, Parameter(help="CPUs to assume, e.g. 0-7")] = None,
    cache_dir: Annotated[str | None, Parameter(help="where artifacts are; default: $XDG_CACHE_HOME/autotune")] = None,
    trust_profile: Annotated[
        bool, Parameter(negative="", help="native code of the profile may be opened, not only our own cache's")
    ] = False,
) -> int:
    """Say whether a profile holds here: each field that differs and what follows. Exit code 0: holds, 5: does not."""
    from tuner.loading.checking import check_profile
    from tuner.loading.files import read_profile
    from tuner.reporting.checks import render_check

    result = check_profile(
        read_profile(profile),
        profile,
        model=model,
        root=root,
        affinity=affinity,
        cache_dir=cache_dir,
        trust_profile=trust_profile,
        trust_code=trust_code,
    )
    if json:
        sys.stdout.write(result.to_json(indent=1) + "\n")
    else:
        render_check(result)
    return 0 if result.holds else 5
