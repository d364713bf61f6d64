"""Parses the rule language of search spaces; only listed syntax is accepted, and nothing is ever executed as Python.

Names stand under ``host. model. workload. artifact. session. process.``; there are numbers, texts, booleans,
comparisons (also chained), ``in`` and ``not in``, ``and or not``, ``+ - * //``, ``min`` and ``max``. A name without a
value is unknown, and so is what depends on it.
"""

import ast
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from tuner.errors import UsageError
from tuner.space import operations

__all__ = ["FACT_ROOTS", "PARAMETER_ROOTS", "Expression"]

FACT_ROOTS = ("host", "model", "workload")
PARAMETER_ROOTS = ("artifact", "session", "process")
MAX_LENGTH = 1000
MAX_DEPTH = 32

Names = Mapping[str, object]
Term = Callable[[Names], object]


@dataclass(frozen=True)
class Expression:
    """A parsed expression.

    Attributes:
        text: As written.
        where: File and key, for messages.
        names: All dotted names in it.
    """

    text: str
    where: str
    names: frozenset[str]
    _term: Term = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, where: str) -> "Expression":
        """Parse `text`.

        Raises:
            UsageError: Anything outside the language; names `where` and the column.
        """
        text = text.strip()
        if len(text) > MAX_LENGTH:
            raise UsageError(f"{where}: the expression has {len(text)} characters; at most {MAX_LENGTH} are allowed")
        if not text.isprintable() or "\\" in text:
            raise UsageError(f"{where}: the expression holds a backslash or a control character; write it without")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text, mode="eval")
        except SyntaxError as error:
            raise UsageError(f"{where}: {text!r}: {error.msg} at column {error.offset or 1}") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise UsageError(f"{where}: the expression is too involved ({type(error).__name__}); simplify it") from None
        parser = _Parser(text, where)
        term = parser.term(tree.body, 1)
        return cls(text, where, frozenset(parser.names), term)

    @property
    def parameters(self) -> frozenset[str]:
        """Names of parameters (not of facts) in it."""
        return frozenset(name for name in self.names if name.partition(".")[0] in PARAMETER_ROOTS)

    def truth(self, names: Names) -> bool | None:
        """Return True, False or None (unknown).

        Raises:
            UsageError: Values do not fit the operators, or the result is no truth value.
        """
        value = self._value(names)
        if value is None or isinstance(value, bool):
            return value
        raise UsageError(f"{self.where}: {self.text!r} is neither true nor false; compare it with something")

    def number(self, names: Names) -> int | float | None:
        """Return a finite number, or None (unknown).

        Raises:
            UsageError: Values do not fit the operators, or the result is no number.
        """
        value = self._value(names)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        raise UsageError(f"{self.where}: {self.text!r} is not a number")

    def _value(self, names: Names) -> object:
        try:
            return self._term(names)
        except operations.OperationError as error:
            raise UsageError(f"{self.where}: {self.text!r}: {error}") from None


class _Parser:
    """Turns accepted syntax nodes into functions of the names."""

    RELATIONS: ClassVar[dict[type[ast.cmpop], str]] = {
        ast.Eq: "==",
        ast.NotEq: "!=",
        ast.Lt: "<",
        ast.LtE: "<=",
        ast.Gt: ">",
        ast.GtE: ">=",
        ast.In: "in",
        ast.NotIn: "not in",
    }
    ARITHMETIC: ClassVar[dict[type[ast.operator], str]] = {
        ast.Add: "+",
        ast.Sub: "-",
        ast.Mult: "*",
        ast.FloorDiv: "//",
    }

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where
        self.names: set[str] = set()

    def refusal(self, node: ast.expr, what: str) -> UsageError:
        """Return the error for `node`, with its column counted in characters from 1."""
        column = len(self.text.encode()[: node.col_offset].decode(errors="ignore")) + 1
        return UsageError(f"{self.where}: {self.text!r}: {what} at column {column}")

    def term(self, node: ast.expr, depth: int) -> Term:
        """Return the function that computes `node`.

        Raises:
            UsageError: The node is not part of the language, or nested too deeply.
        """
        if depth > MAX_DEPTH:
            raise self.refusal(node, f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, ast.Constant):
            return self.constant(node)
        if isinstance(node, ast.Name | ast.Attribute):
            return self.name(node)
        return self.operation(node, depth)

    def operation(self, node: ast.expr, depth: int) -> Term:
        """Return the function that computes an operator or call."""
        match node:
            case ast.BoolOp():
                return self.logic(node, depth)
            case ast.UnaryOp():
                return self.unary(node, depth)
            case ast.BinOp():
                return self.binary(node, depth)
            case ast.Compare():
                return self.comparison(node, depth)
            case ast.Call():
                return self.extreme(node, depth)
            case _:
                raise self.refusal(node, f"{type(node).__name__} is not part of the rule language")

    def constant(self, node: ast.Constant) -> Term:
        """Return a number, text or boolean."""
        value = node.value
        if not isinstance(value, bool | int | float | str):
            raise self.refusal(node, f"{value!r} is not a number, text or boolean")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.refusal(node, "the number is not finite")
        return lambda _: value

    def name(self, node: ast.Name | ast.Attribute) -> Term:
        """Return the value of a dotted name; ``true`` and ``false`` may be written as in TOML."""
        if isinstance(node, ast.Name) and node.id in {"true", "false"}:
            value = node.id == "true"
            return lambda _: value
        parts: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        roots = (*FACT_ROOTS, *PARAMETER_ROOTS)
        if not isinstance(inner, ast.Name) or inner.id not in roots or not parts:
            raise self.refusal(node, f"names stand under {' '.join(root + '.' for root in roots)}; found another")
        dotted = ".".join((inner.id, *reversed(parts)))
        self.names.add(dotted)
        return lambda names: names.get(dotted)

    def logic(self, node: ast.BoolOp, depth: int) -> Term:
        """Return an ``and`` or ``or``."""
        terms = [self.term(value, depth + 1) for value in node.values]
        join = operations.conjunction if isinstance(node.op, ast.And) else operations.disjunction
        return lambda names: join(term(names) for term in terms)

    def unary(self, node: ast.UnaryOp, depth: int) -> Term:
        """Return a ``not`` or a sign."""
        inner = self.term(node.operand, depth + 1)
        match node.op:
            case ast.Not():
                return lambda names: operations.negation(inner(names))
            case ast.USub():
                return lambda names: operations.compute("-", 0, inner(names))
            case ast.UAdd():
                return lambda names: operations.compute("+", 0, inner(names))
            case _:
                raise self.refusal(node, "this operator is not part of the rule language")

    def binary(self, node: ast.BinOp, depth: int) -> Term:
        """Return a sum, difference, product or whole quotient."""
        symbol = self.ARITHMETIC.get(type(node.op))
        if symbol is None:
            raise self.refusal(node, "of the arithmetic operators only + - * // are allowed;")
        left, right = self.term(node.left, depth + 1), self.term(node.right, depth + 1)
        return lambda names: operations.compute(symbol, left(names), right(names))

    def comparison(self, node: ast.Compare, depth: int) -> Term:
        """Return a comparison, chained ones as the ``and`` of their links."""
        links: list[Term] = []
        left = self.term(node.left, depth + 1)
        for kind, item in zip(node.ops, node.comparators, strict=True):
            symbol = self.RELATIONS.get(type(kind))
            if symbol is None:
                raise self.refusal(node, "'is' is not part of the rule language; use ==")
            right = self.listing(item, depth + 1) if symbol.endswith("in") else self.term(item, depth + 1)
            links.append(_link(symbol, left, right))
            left = right
        return links[0] if len(links) == 1 else lambda names: operations.conjunction(link(names) for link in links)

    def listing(self, node: ast.expr, depth: int) -> Term:
        """Return what may stand at the right of ``in``: a name, or a list in brackets."""
        if not isinstance(node, ast.Tuple | ast.List):
            return self.term(node, depth)
        items = [self.term(item, depth + 1) for item in node.elts]
        return lambda names: tuple(item(names) for item in items)

    def extreme(self, node: ast.Call, depth: int) -> Term:
        """Return a ``min`` or ``max``."""
        function = node.func
        if not isinstance(function, ast.Name) or function.id not in {"min", "max"}:
            raise self.refusal(node, "only min and max can be called;")
        if node.keywords or not node.args:
            raise self.refusal(node, f"{function.id} takes one or more plain values;")
        symbol = function.id
        terms = [self.term(item, depth + 1) for item in node.args]
        return lambda names: operations.extreme(symbol, (term(names) for term in terms))


def _link(symbol: str, left: Term, right: Term) -> Term:
    """Return one comparison of two terms."""
    if symbol == "in":
        return lambda names: operations.is_member(left(names), right(names))
    if symbol == "not in":
        return lambda names: operations.negation(operations.is_member(left(names), right(names)))
    return lambda names: operations.is_related(symbol, left(names), right(names))
