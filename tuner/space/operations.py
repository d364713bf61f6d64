"""Computes with values of rules, where None means unknown and spreads (Kleene's logic); it parses nothing."""

import math
import operator
from collections.abc import Callable, Iterable

__all__ = ["OperationError", "compute", "conjunction", "disjunction", "extreme", "is_member", "is_related", "negation"]


class OperationError(Exception):
    """Values that an operator cannot take; the text says which."""


_ORDERS: dict[str, Callable[[int | float, int | float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: dict[str, Callable[[int | float, int | float], int | float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
}


def _kind(value: object) -> str:
    """Return what a value is, in words."""
    if isinstance(value, bool):
        return "a truth value"
    if isinstance(value, int | float):
        return "a number"
    return "a text" if isinstance(value, str) else "a list"


def _number(value: object, symbol: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OperationError(f"{symbol!r} needs numbers, not {_kind(value)}")
    return value


def is_related(symbol: str, left: object, right: object) -> bool | None:
    """Return whether `left` stands in the relation to `right`; None when either is unknown.

    Raises:
        OperationError: The two are of different kinds, or are not of a kind that has an order.
    """
    if left is None or right is None:
        return None
    if _kind(left) != _kind(right):
        raise OperationError(f"{symbol!r} compares {_kind(left)} with {_kind(right)}")
    if symbol in _ORDERS:
        return _ORDERS[symbol](_number(left, symbol), _number(right, symbol))
    return (left == right) is (symbol == "==")


def is_member(item: object, items: object) -> bool | None:
    """Return whether `item` is one of `items`; None when that is unknown.

    Raises:
        OperationError: `items` is not a list.
    """
    if item is None or items is None:
        return None
    if not isinstance(items, tuple):
        raise OperationError(f"'in' needs a list on its right, not {_kind(items)}")
    if any(other is not None and _kind(other) == _kind(item) and other == item for other in items):
        return True
    return None if None in items else False


def conjunction(values: Iterable[object]) -> bool | None:
    """Return the logical and, which stops at the first False.

    Raises:
        OperationError: A value is neither a truth value nor unknown.
    """
    known = True
    for value in values:
        truth = _truth(value, "and")
        if truth is False:
            return False
        known = known and truth is not None
    return True if known else None


def disjunction(values: Iterable[object]) -> bool | None:
    """Return the logical or, which stops at the first True.

    Raises:
        OperationError: A value is neither a truth value nor unknown.
    """
    known = True
    for value in values:
        truth = _truth(value, "or")
        if truth is True:
            return True
        known = known and truth is not None
    return False if known else None


def negation(value: object) -> bool | None:
    """Return the logical not.

    Raises:
        OperationError: The value is neither a truth value nor unknown.
    """
    truth = _truth(value, "not")
    return None if truth is None else not truth


def _truth(value: object, symbol: str) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise OperationError(f"{symbol!r} needs truth values, not {_kind(value)}")


def compute(symbol: str, left: object, right: object) -> int | float | None:
    """Return the sum, difference, product or whole quotient.

    Raises:
        OperationError: Not numbers, a division by zero, or a result that is not finite.
    """
    if left is None or right is None:
        return None
    try:
        result = _ARITHMETIC[symbol](_number(left, symbol), _number(right, symbol))
        finite = math.isfinite(result)
    except (ZeroDivisionError, OverflowError):
        finite = False
    if not finite:
        raise OperationError(f"{symbol!r} gives no finite number")
    return result


def extreme(symbol: str, values: Iterable[object]) -> int | float | None:
    """Return the least (``min``) or greatest (``max``) number.

    Raises:
        OperationError: A value is not a number.
    """
    numbers = [None if value is None else _number(value, symbol) for value in values]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return None
    return min(known) if symbol == "min" else max(known)
