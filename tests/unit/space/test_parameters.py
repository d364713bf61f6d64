"""Tables of parameters: what is accepted, what is refused and how."""

import pytest

from tuner.errors import UsageError
from tuner.space.parameters import Choice, Integer, Real, is_same, parameter_of


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, r"f\.toml: session\.x\.kind: must be one of choice, integer, real"),
        ({"kind": "int"}, r"session\.x\.kind: .* not 'int'"),
        ({"kind": "choice", "values": []}, r"session\.x\.values: a choice needs"),
        ({"kind": "choice", "values": "abc"}, r"session\.x\.values: a choice needs"),
        ({"kind": "choice", "values": [1, 1]}, r"session\.x\.values: 1 stands there twice"),
        ({"kind": "choice", "values": [[1]]}, r"session\.x\.values: \[1\] is not"),
        ({"kind": "choice", "values": [float("nan")]}, r"session\.x\.values: nan is not"),
        ({"kind": "choice", "values": [1], "default": 2}, r"session\.x\.default: 2 is not one of 1"),
        ({"kind": "choice", "values": [True], "default": 1}, r"session\.x\.default: 1 is not one of True"),
        ({"kind": "choice", "values": ["a"], "prior": "b"}, r"session\.x\.prior: 'b' is not one of 'a'"),
        ({"kind": "choice", "values": [1], "min": 1}, r"session\.x: unknown key 'min'"),
        ({"kind": "choice", "values": [1], "defualt": 1}, r"unknown key 'defualt'; nearest known: default"),
        ({"kind": "integer", "max": 2}, r"session\.x\.min: missing"),
        ({"kind": "integer", "min": 2}, r"session\.x\.max: missing"),
        ({"kind": "integer", "min": 3, "max": 2}, r"session\.x\.min: 3 is greater than max, 2"),
        ({"kind": "integer", "min": 1.5, "max": 2}, r"session\.x\.min: 1\.5 is not"),
        ({"kind": "integer", "min": True, "max": 2}, r"session\.x\.min: True is not"),
        ({"kind": "integer", "min": 1, "max": 2, "default": 3}, r"session\.x\.default: 3 is outside the range, 1 to 2"),
        (
            {"kind": "integer", "min": 1, "max": "host.x", "prior": 0},
            r"session\.x\.prior: 0 is outside .* 1 to host\.x",
        ),
        ({"kind": "integer", "min": 1, "max": 2, "step": 0}, r"session\.x\.step: must be a whole number from 1"),
        ({"kind": "integer", "min": 1, "max": 2, "step": 0.5}, r"session\.x\.step: must be a whole number"),
        ({"kind": "integer", "min": 0, "max": 2, "log": True}, r"session\.x\.log: needs a min above 0"),
        ({"kind": "integer", "min": 1, "max": 2, "log": 1}, r"session\.x\.log: must be a boolean, not 1"),
        ({"kind": "integer", "min": 1, "max": "cpus"}, r"session\.x\.max: 'cpus': names stand under"),
        ({"kind": "real", "min": 0.0, "max": 1.0, "step": -0.1}, r"session\.x\.step: must be a positive number"),
        ({"kind": "real", "min": float("-inf"), "max": 1.0}, r"session\.x\.min: -inf is not"),
        ({"kind": "choice", "values": [1], "when": "1 ="}, r"session\.x\.when: '1 =': .* at column"),
        ({"kind": "choice", "values": [1], "when": 1}, r"session\.x\.when: must be a text"),
        ({"kind": "choice", "values": [1], "numerics": "yes"}, r"session\.x\.numerics: must be a boolean"),
        ({"kind": "choice", "values": [1], "reason": 1}, r"session\.x\.reason: must be a text"),
    ],
)
def test_refusal(table, message):
    """What cannot be meant is refused with file and key."""
    with pytest.raises(UsageError, match=message) as caught:
        parameter_of("session.x", table, "f.toml")
    assert str(caught.value).startswith("f.toml: session.x")


def test_choice():
    """A choice keeps its values in the order written."""
    made = parameter_of("session.x", {"kind": "choice", "values": ["b", "a"], "numerics": True}, "f.toml")
    assert isinstance(made, Choice)
    assert made.values == ("b", "a")
    assert made.numerics


def test_integer_with_expressions():
    """Bounds and starting values may be expressions."""
    made = parameter_of("session.x", {"kind": "integer", "min": 1, "max": "host.a", "prior": "host.b"}, "f.toml")
    assert isinstance(made, Integer)
    assert {expression.text for expression in made.expressions()} == {"host.a", "host.b"}


def test_numeric_choice_may_start_at_an_expression():
    """A text as the prior of numbers is an expression, among texts it is a value."""
    made = parameter_of("session.x", {"kind": "choice", "values": [1, 2], "prior": "host.b"}, "f.toml")
    assert [expression.text for expression in made.expressions()] == ["host.b"]


def test_real():
    """A real accepts whole bounds."""
    made = parameter_of("session.x", {"kind": "real", "min": 1, "max": 2.5, "log": True}, "f.toml")
    assert isinstance(made, Real)
    assert (made.min, made.max, made.log) == (1, 2.5, True)


@pytest.mark.parametrize(("left", "right", "expected"), [(1, True, False), (1, 1.0, True), (False, 0, False)])
def test_true_is_not_one(left, right, expected):
    """Values are compared without Python's truth arithmetic."""
    assert is_same(left, right) is expected
