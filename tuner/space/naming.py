"""Finds the name somebody meant; it knows no names itself."""

from collections.abc import Iterable
from difflib import get_close_matches

from tuner.errors import UsageError

__all__ = ["did_you_mean", "nearest", "refuse_unknown"]


def did_you_mean(name: str, known: Iterable[str], shown: Iterable[str] | None = None, *, cutoff: float = 0.6) -> str:
    """Return ``did you mean x?``, the name closest to what a user wrote, or ``known: …`` where none is close.

    Args:
        name: What was written.
        known: What could have been meant.
        shown: What is listed where none is close, if not all that is known.
        cutoff: How alike, from 0 to 1, the closest must be.
    """
    known = tuple(known)
    close = get_close_matches(name[:200], known, n=1, cutoff=cutoff)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known if shown is None else shown)}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``nearest known: x``, the name closest to `name`, or the known names where none is close."""
    names = sorted(set(known))
    close = get_close_matches(name[:200], names, n=1, cutoff=0.5)
    if close:
        return f"nearest known: {close[0]}"
    return f"known: {', '.join(names[:12])}{', …' if len(names) > 12 else ''}" if names else "none is known"  # noqa: PLR2004


def refuse_unknown(keys: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raise unless all `keys` are `known`.

    Raises:
        UsageError: The first unknown key, with the nearest known one.
    """
    known = tuple(known)
    for key in keys:
        if key not in known:
            raise UsageError(f"{where}: unknown key {key!r}; {nearest(key, known)}")
