"""The three kinds of parameters, read from their TOML tables; what they become on a host is decided elsewhere."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from tuner.errors import UsageError
from tuner.space.expressions import Expression
from tuner.space.naming import refuse_unknown

__all__ = ["Choice", "Integer", "Number", "Parameter", "Real", "Value", "is_same", "parameter_of"]

Value = bool | int | float | str
"""A value of a parameter."""

Number = int | float | Expression
T = TypeVar("T")

_COMMON = ("kind", "default", "prior", "numerics", "when", "reason")
_KEYS = {
    "choice": (*_COMMON, "values"),
    "integer": (*_COMMON, "min", "max", "step", "log"),
    "real": (*_COMMON, "min", "max", "step", "log"),
}


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """What all kinds share.

    Attributes:
        name: Dotted name, ``session.intra_op_threads``.
        where: File and name, for messages.
        default: The engine's own value; None when it has none or none that the range holds.
        prior: Where screening starts; None for the default.
        numerics: Whether it can change outputs.
        when: It has a value only where this is true.
    """

    name: str
    where: str
    default: Value | Expression | None = None
    prior: Value | Expression | None = None
    numerics: bool = False
    when: Expression | None = None
    reason: str = ""

    def expressions(self) -> tuple[Expression, ...]:
        """Return the expressions that give bounds and starting values, which may name facts only."""
        return tuple(value for value in (self.default, self.prior) if isinstance(value, Expression))


@dataclass(frozen=True, kw_only=True)
class Choice(Parameter):
    """One of a few values, in the order written."""

    values: tuple[Value, ...]


@dataclass(frozen=True, kw_only=True)
class Integer(Parameter):
    """A whole number from `min` to `max`, both included; `log` says that ratios matter, not differences."""

    min: Number
    max: Number
    step: int = 1
    log: bool = False

    def expressions(self) -> tuple[Expression, ...]:
        """Return the expressions of the range and the starting values."""
        return (*_parsed(self.min, self.max), *super().expressions())


@dataclass(frozen=True, kw_only=True)
class Real(Parameter):
    """A number from `min` to `max`, both included, searched on a grid: multiples of `step`, else nine points."""

    min: Number
    max: Number
    step: float | None = None
    log: bool = False

    def expressions(self) -> tuple[Expression, ...]:
        """Return the expressions of the range and the starting values."""
        return (*_parsed(self.min, self.max), *super().expressions())


def is_same(left: object, right: object) -> bool:
    """Return whether two values are equal; unlike in Python, true is not 1."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def parameter_of(name: str, table: Mapping[str, object], file: str) -> Parameter:
    """Return the parameter that a TOML table describes.

    Raises:
        UsageError: An unknown or missing key, a value of a wrong type, an empty range, a default or prior outside it.
    """
    where = f"{file}: {name}"
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in _KEYS:
        raise UsageError(f"{where}.kind: must be one of {', '.join(_KEYS)}" + (f", not {kind!r}" if kind else ""))
    refuse_unknown(table, _KEYS[kind], where)
    when = _typed(table, "when", str, where)
    shared: dict[str, object] = {
        "name": name,
        "where": where,
        "numerics": _typed(table, "numerics", bool, where) or False,
        "when": None if when is None else Expression.parse(when, f"{where}.when"),
        "reason": _typed(table, "reason", str, where) or "",
    }
    return _choice(table, shared, where) if kind == "choice" else _ranged(kind, table, shared, where)


def _choice(table: Mapping[str, object], shared: dict[str, object], where: str) -> Choice:
    values = table.get("values")
    if not isinstance(values, list) or not values:
        raise UsageError(f"{where}.values: a choice needs a list of one or more values")
    for position, value in enumerate(values):
        if not _is_scalar(value):
            raise UsageError(f"{where}.values: {value!r} is not a boolean, finite number or text")
        if any(is_same(value, other) for other in values[:position]):
            raise UsageError(f"{where}.values: {value!r} stands there twice")
    numeric = all(_is_number(value) for value in values)
    starts: dict[str, object] = {}
    for key in ("default", "prior"):
        value = table.get(key)
        if isinstance(value, str) and numeric:
            value = Expression.parse(value, f"{where}.{key}")
        elif value is not None and not any(is_same(value, other) for other in values):
            raise UsageError(f"{where}.{key}: {value!r} is not one of {', '.join(map(repr, values))}")
        starts[key] = value
    return Choice(values=tuple(values), **shared, **starts)  # type: ignore[arg-type]


def _ranged(kind: str, table: Mapping[str, object], shared: dict[str, object], where: str) -> Integer | Real:
    accepts = _is_number if kind == "real" else _is_whole
    bounds = {key: _number(table, key, accepts, where) for key in ("min", "max", "default", "prior")}
    low, high = bounds["min"], bounds["max"]
    if low is None or high is None:
        raise UsageError(f"{where}.{'min' if low is None else 'max'}: missing; a range needs min and max")
    if not isinstance(low, Expression) and not isinstance(high, Expression) and low > high:
        raise UsageError(f"{where}.min: {low} is greater than max, {high}")
    for key in ("default", "prior"):
        value = bounds[key]
        below = _both_known(value, low) and value < low  # type: ignore[operator]
        above = _both_known(value, high) and value > high  # type: ignore[operator]
        if below or above:
            raise UsageError(f"{where}.{key}: {value} is outside the range, {_text(low)} to {_text(high)}")
    step = table.get("step")
    if step is not None and (not accepts(step) or step <= 0):  # type: ignore[operator]
        raise UsageError(f"{where}.step: must be a {'positive number' if kind == 'real' else 'whole number from 1'}")
    log = _typed(table, "log", bool, where) or False
    if log and not isinstance(low, Expression) and low <= 0:
        raise UsageError(f"{where}.log: needs a min above 0")
    made = Real if kind == "real" else Integer
    extra = {} if step is None else {"step": step}
    return made(log=log, **bounds, **extra, **shared)  # type: ignore[arg-type]


def _number(
    table: Mapping[str, object], key: str, accepts: Callable[[object], bool], where: str
) -> int | float | Expression | None:
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, str):
        return Expression.parse(value, f"{where}.{key}")
    if not accepts(value):
        raise UsageError(f"{where}.{key}: {value!r} is not a finite number of this kind, nor an expression in quotes")
    assert isinstance(value, int | float)
    return value


def _typed(table: Mapping[str, object], key: str, wanted: type[T], where: str) -> T | None:
    value = table.get(key)
    if value is None or isinstance(value, wanted):
        return value
    raise UsageError(f"{where}.{key}: must be a {'text' if wanted is str else 'boolean'}, not {value!r}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_scalar(value: object) -> bool:
    return isinstance(value, bool | str) or _is_number(value)


def _both_known(left: object, right: object) -> bool:
    return not (left is None or isinstance(left, Expression) or isinstance(right, Expression))


def _text(value: Number) -> str:
    return value.text if isinstance(value, Expression) else str(value)


def _parsed(*values: object) -> tuple[Expression, ...]:
    return tuple(value for value in values if isinstance(value, Expression))
