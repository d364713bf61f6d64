"""Judges points: whether they are valid, and which compute the same outputs; it changes none."""

import json
from collections.abc import Mapping

from tuner.errors import UsageError
from tuner.space.naming import nearest
from tuner.space.parameters import Value
from tuner.space.tables import CHAIN
from tuner.space.walking import ResolvedBackend

__all__ = ["check_value", "numerics_key", "violations"]


def check_value(backend: ResolvedBackend, name: str, value: Value) -> None:
    """Raise unless `value` is one that the parameter has here.

    Raises:
        UsageError: An unknown parameter or value.
    """
    parameter = backend.by_name.get(name)
    if parameter is None:
        raise UsageError(f"{backend.name} has no parameter {name!r} here; {nearest(name, backend.by_name)}")
    if parameter.domain.find(value) is None:
        raise UsageError(f"{backend.name}: {name} cannot be {value!r}; it can be {parameter.domain.text()}")


def violations(backend: ResolvedBackend, point: Mapping[str, Value]) -> tuple[str, ...]:
    """Return the reasons why `point` is not a valid canonical point of `backend`."""
    names: dict[str, object] = dict(backend.facts)
    reasons = [
        f"{name} is not a parameter of {backend.name} here; {nearest(name, backend.by_name)}"
        for name in point
        if name != "backend" and name not in backend.by_name
    ]
    for parameter in backend.parameters:
        value = point.get(parameter.name)
        is_active = backend.is_active(parameter, names)
        if not is_active and value is not None:
            reasons.append(f"{parameter.name} has no effect with these values and must be left out")
        elif is_active and value is None:
            reasons.append(f"{parameter.name} is missing")
        elif is_active and value is not None:
            if parameter.domain.find(value) is None:
                reasons.append(f"{parameter.name} cannot be {value!r}; it can be {parameter.domain.text()}")
                break  # whether the others are active may depend on it
            names[parameter.name] = value
    if not reasons:
        reasons = [rule.reason for rule in backend.rules if rule.require.truth(names) is False]
    return tuple(reasons)


def numerics_key(backend: ResolvedBackend, point: Mapping[str, Value]) -> str:
    """Return backend, steps and every value of the point that can change outputs, as one text."""
    steps = "+".join(backend.chains[str(point[CHAIN])]) or "source"
    values = {
        parameter.name: point[parameter.name]
        for parameter in backend.parameters
        if parameter.name in point and (parameter.numerics or parameter.step)
    }
    return f"{backend.name} {steps} {json.dumps(values, sort_keys=True)}"
