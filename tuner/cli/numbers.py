"""Whole numbers as options: the option parser alone rounds 1.5 to 2 without a word."""

from collections.abc import Sequence

from cyclopts import Parameter, Token


def whole(_type: object, tokens: Sequence[Token]) -> int:
    """Read a whole number.

    Raises:
        ValueError: It is none (the parser names the option).
    """
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is no whole number") from None


WHOLE = Parameter(converter=whole)
