"""`autotune show`: a profile, a study or the search space, read and rendered; it measures nothing."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tuner.errors import UsageError


def show(
    what: Annotated[str, Parameter(help="a profile, a study directory, or the word `space`")],
    /,
    *,
    json: Annotated[bool, Parameter(negative="", help="print one JSON document")] = False,
    backends: Annotated[str | None, Parameter(help="only for `space`: a,b")] = None,
    space: Annotated[list[str], Parameter(help="only for `space`: further TOML files", negative="")] = [],  # noqa: B006
) -> int:
    """Show a profile, a study or the search space of this host."""
    if what == "space":
        from tuner.reporting.spaces import show_space

        show_space(backends=backends, files=tuple(Path(name) for name in space), as_json=json)
        return 0
    path = Path(what)
    if path.is_dir():
        from tuner.reporting.studies import show_study

        show_study(path, as_json=json)
        return 0
    if not path.exists():
        raise UsageError(f"{what}: no such profile or study directory")
    from tuner.loading.files import read_profile
    from tuner.reporting.summary import render_summary

    profile = read_profile(path)
    if json:
        sys.stdout.write(profile.to_json(indent=1) + "\n")
    else:
        render_summary(profile, path)
    return 0
