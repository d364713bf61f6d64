"""`autotune cache`: the artifact store, listed or pruned."""

import json as json_format
import sys
from typing import Annotated

from cyclopts import Parameter


def cache(
    *,
    prune: Annotated[bool, Parameter(negative="", help="remove least recently used entries above --limit")] = False,
    limit: Annotated[str, Parameter(help="size to keep, e.g. 5GiB; what a known profile needs stays")] = "20GiB",
    cache_dir: Annotated[str | None, Parameter(help="default: $XDG_CACHE_HOME/autotune")] = None,
    json: Annotated[bool, Parameter(negative="", help="print one JSON document")] = False,
) -> int:
    """List the artifacts that were built on this machine, or remove the ones longest unused."""
    from dataclasses import asdict

    from tuner.artifacts.places import cache_directory
    from tuner.artifacts.pruning import entries
    from tuner.artifacts.pruning import prune as prune_store
    from tuner.artifacts.store import Store
    from tuner.reporting.caches import render_cache
    from tuner.study.objective import BYTES, parse_value

    store = Store(cache_directory(cache_dir))
    removed = prune_store(store, int(parse_value(limit, BYTES))) if prune else []
    present = entries(store)
    if json:
        document = {
            "directory": str(store.root),
            "entries": [asdict(entry) for entry in present],
            "removed": [asdict(entry) for entry in removed],
        }
        sys.stdout.write(json_format.dumps(document, indent=1) + "\n")
    else:
        render_cache(store.root, present, removed)
    return 0
