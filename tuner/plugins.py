"""Looks up plug-ins by entry point and data files by name; it knows no plug-in."""

from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
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
        UsageError: No such plug-in, or its module cannot be imported.
    """
    points = entry_points_of(group)
    if name not in points:
        raise UsageError(f"no plug-in {name!r} in group {group}; installed: {', '.join(points) or 'none'}")
    try:
        return points[name].load()()
    except ImportError as error:
        raise UsageError(f"plug-in {name!r} of group {group} cannot be imported: {error}") from error


def installed_versions(*distributions: str) -> dict[str, str] | None:
    """Return the versions of `distributions` from metadata only; None when one is absent."""
    try:
        return {name: version(name) for name in distributions}
    except PackageNotFoundError:
        return None


def space_file(name: str) -> Traversable:
    """Return the search-space file `name`: inside the installed package, or beside it in a checkout."""
    inside = files("tuner") / "search_spaces" / name
    if inside.is_file():
        return inside
    return Path(__file__).resolve().parents[1] / "search_spaces" / name
