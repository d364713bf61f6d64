"""`autotune show`: a profile, a study or the search space, read and rendered; it measures nothing."""

import sys
from json import dumps
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tuner.errors import UsageError


def show(
    what: Annotated[str, Parameter(help="a profile, a study directory, or the word `space`")],
    /,
    *,
    json: Annotated[bool, Parameter(negative="", help="print one JSON document")] = False,
    model: Annotated[str | None, Parameter(help="only for `space`: the model it is narrowed for")] = None,
    backends: Annotated[str | None, Parameter(help="only for `space`: a,b")] = None,
    space: Annotated[list[str], Parameter(help="only for `space`: further TOML files", negative="")] = [],  # noqa: B006
    trust_code: Annotated[bool, Parameter(negative="", help="run the code of a py: model")] = False,
) -> int:
    """Show a profile, a study or the search space of this host."""
    if what == "space":
        show_space(model=model, backends=backends, files=tuple(space), as_json=json, trust_code=trust_code)
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


def show_space(
    *, model: str | None, backends: str | None, files: tuple[str, ...], as_json: bool, trust_code: bool
) -> None:
    """Show the search space as it is on this host: what `autotune tune` would search, rules with their reasons."""
    from rich.console import Console

    from tuner.artifacts.places import cache_directory
    from tuner.hardware.detection import detect
    from tuner.reporting.spaces import render_space
    from tuner.tuning.engines import resolve_space

    names = tuple(name.strip() for name in backends.split(",")) if backends is not None else None
    resolved = resolve_space(
        detect(), model=model, backends=names, files=files, cache_dir=cache_directory(None), trust_code=trust_code
    )
    if as_json:
        sys.stdout.write(dumps(resolved.describe(), indent=1, allow_nan=False) + "\n")
    else:
        Console(highlight=False).print(render_space(resolved))
