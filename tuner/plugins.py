"""Looks up plug-ins by entry point and data files by name; it knows no plug-in."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, requires, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from tuner.errors import UsageError


@cache
def entry_points_of(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of `group` by name, sorted; the first of equal names wins."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        found.setdefault(point.name, point)
    return dict(sorted(found.items()))


def plugin(group: str, name: str) -> object:
    """Return an instance of the plug-in `name` of `group`.

    Raises:
        UsageError: No such plug-in, or its module cannot be imported, whatever that raises.
    """
    points = entry_points_of(group)
    if name not in points:
        raise UsageError(f"no plug-in {name!r} in group {group}; installed: {', '.join(points) or 'none'}")
    try:
        return points[name].load()()
    except (Exception, SystemExit) as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UsageError(f"plug-in {name!r} of group {group} cannot be imported: {text}") from error


def installed_versions(*distributions: str) -> dict[str, str] | None:
    """Return the versions of `distributions` from metadata only; None when one is absent, or its name is empty."""
    try:
        return {name: version(name) for name in distributions}
    except (PackageNotFoundError, ValueError):
        return None


@cache
def oldest_versions(distribution: str = "autotune-cpu") -> Mapping[str, str]:
    """Return the oldest versions that `distribution` works with, extras included, from its metadata."""
    try:
        texts = requires(distribution) or ()
    except PackageNotFoundError:
        texts = ()
    found = (re.match(r"\s*([\w.-]+)[^;]*>=\s*([\d.]+)", text) for text in texts)
    return {match[1]: match[2] for match in found if match}


def too_old(versions: Mapping[str, str], oldest: Mapping[str, str] | None = None) -> str | None:
    """Say which of `versions` is older than what we work with (None: none), with the way out."""
    for name, needed in (oldest_versions() if oldest is None else oldest).items():
        if name in versions and _numbers(versions[name]) < _numbers(needed):
            return f"{name} {versions[name]} is too old: pip install '{name}>={needed}'"
    return None


def _numbers(text: str) -> tuple[int, ...]:
    """Return the release of a version as numbers: ``2.13.0+cpu`` is (2, 13), ``2026.0rc1`` (2026, 0) without zeros."""
    numbers = [int(part) for part in re.split(r"\.", re.match(r"[\d.]*", text)[0].strip(".")) if part]  # type: ignore[index]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def space_file(name: str) -> Traversable:
    """Return the search-space file `name`: inside the installed package, or beside it in a checkout."""
    inside = files("tuner") / "search_spaces" / name
    if inside.is_file():
        return inside
    return Path(__file__).resolve().parents[1] / "search_spaces" / name
