"""`autotune bundle`: profile, artifacts and digests in one directory for servers; the model stays where it is."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def bundle(
    profile: Annotated[Path, Parameter(help="the profile")],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="the directory to write; must be new or empty")],
    cache_dir: Annotated[str | None, Parameter(help="where artifacts are; default: $XDG_CACHE_HOME/autotune")] = None,
) -> int:
    """Copy a profile, its artifacts and their digests into one directory that loads from any place."""
    from tuner.artifacts.places import cache_directory
    from tuner.loading.bundling import PROFILE, make_bundle
    from tuner.loading.files import read_profile

    made = make_bundle(profile, output, cache_directory(cache_dir))
    size = sum(file.bytes for file in made.files) / 2**20
    source = read_profile(profile).model.source
    sys.stdout.write(
        f"{output / PROFILE}: {len(made.files)} files, {size:.1f} MiB; "
        f"the model {source} is not in it: on the server give its place to load(…, model=…)\n"
    )
    return 0
