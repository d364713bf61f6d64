"""The values a parameter can take on one host, in order; it knows no conditions and no rules."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tuner.errors import UsageError
from tuner.space.expressions import Expression
from tuner.space.parameters import Choice, Integer, Number, Parameter, Real, Value, is_same

__all__ = ["Domain", "domain_of", "spelled", "start_of"]

_GRID = 9
_MOST_REALS = 10_000


@dataclass(frozen=True)
class Domain:
    """Ordered values; those of a choice have an order only as written.

    Attributes:
        values: A tuple, or a range where they are evenly spaced whole numbers.
        log: Ratios matter, not differences.
    """

    kind: Literal["choice", "integer", "real"]
    values: Sequence[Value]
    log: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def find(self, value: object) -> Value | None:
        """Return the member equal to `value`, None if there is none."""
        if isinstance(self.values, range):
            fits = isinstance(value, int | float) and not isinstance(value, bool) and value in self.values
            return int(value) if fits else None  # type: ignore[call-overload]
        return next((member for member in self.values if is_same(member, value)), None)

    def nearest(self, value: float) -> Value:
        """Return the member of a non-empty numeric domain that is closest to `value`, the smaller of two."""
        if isinstance(self.values, range):
            position = round((value - self.values.start) / self.values.step)
            return self.values[max(0, min(len(self.values) - 1, position))]
        return min(self.values, key=lambda member: abs(float(member) - value))

    def around(self, start: Value) -> Iterator[Value]:
        """Yield all members, `start` first, then by distance from it; a choice goes on in its own order."""
        position = self.values.index(start)
        yield start
        if self.kind == "choice":
            yield from (value for value in self.values if not is_same(value, start))
            return
        for distance in range(1, len(self.values)):
            for index in (position - distance, position + distance):
                if 0 <= index < len(self.values):
                    yield self.values[index]

    def text(self) -> str:
        """Return the values for a person: ``1..8``, ``2..8 by 2`` or a list."""
        many = 12
        if isinstance(self.values, range) and len(self.values) > 2:  # noqa: PLR2004
            by = f" by {self.values.step}" if self.values.step > 1 else ""
            return f"{self.values[0]}..{self.values[-1]}{by}"
        shown = ", ".join(spelled(value) for value in self.values[:many])
        return f"{shown}, … {spelled(self.values[-1])}" if len(self.values) > many else shown or "none"


def domain_of(parameter: Parameter, facts: Mapping[str, object]) -> Domain:
    """Return the values of `parameter` with the bounds computed; rules are not applied.

    Raises:
        UsageError: A bound is unknown on this host, or the grid of a real has too many points.
    """
    match parameter:
        case Choice():
            return Domain("choice", parameter.values)
        case Integer():
            low, high = (_bound(bound, parameter, facts) for bound in (parameter.min, parameter.max))
            return Domain("integer", range(math.ceil(low), math.floor(high) + 1, parameter.step), parameter.log)
        case Real():
            low, high = (_bound(bound, parameter, facts) for bound in (parameter.min, parameter.max))
            return Domain("real", _grid(parameter, low, high), parameter.log)
        case _:
            raise AssertionError(parameter)


def start_of(domain: Domain, *candidates: Value | Expression | None, facts: Mapping[str, object]) -> Value | None:
    """Return the first candidate that the domain has, numbers moved into it; None if all are absent or unknown."""
    for candidate in candidates:
        value = candidate.number(facts) if isinstance(candidate, Expression) else candidate
        if value is None or not domain.values:
            continue
        found = domain.find(value)
        if found is not None:
            return found
        if isinstance(value, int | float) and not isinstance(value, bool):
            return domain.nearest(value)
    return None


def _bound(bound: Number, parameter: Parameter, facts: Mapping[str, object]) -> int | float:
    value = bound.number(facts) if isinstance(bound, Expression) else bound
    if value is None:
        assert isinstance(bound, Expression)
        raise UsageError(f"{bound.where}: {bound.text!r} is unknown on this host; write a number for {parameter.name}")
    return value


def _grid(parameter: Real, low: float, high: float) -> tuple[float, ...]:
    if low > high:
        return ()
    if low == high:
        return (float(low),)
    if parameter.step:
        count = math.floor((high - low) / parameter.step + 1e-9) + 1
        if count > _MOST_REALS:
            raise UsageError(f"{parameter.where}.step: gives {count} values; take a step with at most {_MOST_REALS}")
        return tuple(round(low + index * parameter.step, 12) for index in range(count))
    if parameter.log:
        if low <= 0:
            raise UsageError(f"{parameter.where}.log: needs a min above 0, not {low}")
        ratio = (high / low) ** (1 / (_GRID - 1))
        return (float(low), *(low * ratio**index for index in range(1, _GRID - 1)), float(high))
    return tuple(low + (high - low) * index / (_GRID - 1) for index in range(_GRID))


def spelled(value: Value) -> str:
    """Return a value as TOML and ``--fix`` spell it, an empty text in quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) and value else repr(value) if isinstance(value, str) else f"{value:g}"
