"""Reads what ``--fix KEY=VALUE`` asks for; it narrows nothing itself."""

import math
from collections.abc import Mapping, Sequence

from tuner.errors import UsageError
from tuner.space.declared import DeclaredBackend
from tuner.space.domains import Domain
from tuner.space.naming import nearest
from tuner.space.parameters import Value

__all__ = ["check_keys", "fixed_of", "read_value"]


def fixed_of(backend: DeclaredBackend, fixed: Mapping[str, str]) -> dict[str, str]:
    """Return the fixed texts that concern `backend`, by parameter name; a key may begin with ``<backend>/``."""
    names = {parameter.name for parameter in backend.parameters}
    short = {key.removeprefix(f"{backend.name}/"): text for key, text in fixed.items()}
    return {key: text for key, text in short.items() if key in names}


def check_keys(backends: Sequence[DeclaredBackend], fixed: Mapping[str, str]) -> None:
    """Raise unless every fixed key is a parameter of some backend.

    Raises:
        UsageError: An unknown key, with the nearest known one.
    """
    for key, text in fixed.items():
        if not any(fixed_of(backend, {key: text}) for backend in backends):
            known = {parameter.name for backend in backends for parameter in backend.parameters}
            raise UsageError(f"--fix {key}={text}: unknown parameter {key!r}; {nearest(key.rpartition('/')[2], known)}")


def read_value(text: str, domain: Domain) -> Value | None:
    """Return the member of `domain` that `text` means; a real may lie between the points of its grid; else None."""
    written = text.strip()
    for value in domain.values if domain.kind == "choice" else ():
        if isinstance(value, bool):
            if written.lower() == str(value).lower():
                return value
        elif written == str(value):
            return value
    number = _number(written)
    if number is None:
        return None
    if domain.kind == "real" and domain.values:
        return number if float(domain.values[0]) <= number <= float(domain.values[-1]) else None
    return domain.find(number)


def _number(text: str) -> float | None:
    """Return the finite number that `text` is."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
