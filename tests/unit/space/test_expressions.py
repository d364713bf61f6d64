"""The rule language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.errors import UsageError
from tuner.space.expressions import Expression

NAMES = {
    "host.cpu_budget": 4,
    "host.isa": ("avx2", "fma"),
    "session.threads": 2,
    "session.mode": "fast",
    "session.spin": True,
    "artifact.chain": "int8",
}


def truth(text: str) -> bool | None:
    """Return what `text` says of `NAMES`."""
    return Expression.parse(text, "x.toml: rule 1.require").truth(NAMES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("session.threads <= host.cpu_budget", True),
        ("1 < session.threads < 2", False),
        ("1 <= session.threads <= 2 < host.cpu_budget", True),
        ("session.mode == 'fast' and not session.spin", False),
        ("session.mode != 'fast' or session.spin == true", True),
        ("session.spin != True", False),
        ("'avx2' in host.isa", True),
        ("'avx512f' not in host.isa", True),
        ("session.mode in ('fast', 'slow')", True),
        ("session.threads in (1, host.cpu_budget)", False),
        ("session.threads * 2 + 1 - 1 == host.cpu_budget", True),
        ("host.cpu_budget // 3 == 1", True),
        ("min(host.cpu_budget, 3, 8) == 3", True),
        ("max(1, session.threads) > -1", True),
        ("(artifact.chain == 'int8')", True),
    ],
)
def test_value(text, expected):
    """Each operator computes what it says."""
    assert truth(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("session.absent == 1", None),
        ("not session.absent", None),
        ("session.absent + 1 > 0", None),
        ("min(session.absent, 1) > 0", None),
        ("'x' in host.absent", None),
        ("3 in (session.absent, 3)", True),
        ("4 in (session.absent, 3)", None),
        ("session.absent == 1 and session.threads == 1", False),
        ("session.absent == 1 and session.threads == 2", None),
        ("session.absent == 1 or session.threads == 2", True),
        ("session.absent == 1 or session.threads == 1", None),
        ("1 < session.absent < 2", None),
    ],
)
def test_unknown_spreads(text, expected):
    """A name without a value makes unknown what depends on it, and only that."""
    assert truth(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "session.threads.__class__.__bases__()",
        "open('/etc/passwd')",
        "min.__self__",
        "(lambda: 1)()",
        "[x for x in host.isa]",
        "session.threads if session.spin else 1",
        "f'{session.threads}'",
        "session['threads']",
        "{1: 2}",
        "(session.threads := 3)",
        "min(*host.isa)",
        "max(1, key=2)",
        "min()",
        "2 ** 9",
        "1 / 2",
        "7 % 2",
        "~1",
        "1 if True",
        "session.threads is 1",
        "b'x' == b'x'",
        "1j == 1",
        "None == 1",
        "... == 1",
        "1e999 > 1",
        "threads == 1",
        "os.name == 'posix'",
        "session == 1",
        "",
        "1; 2",
        "1 ==",
        "'a\\x62' == 'ab'",
        "1 ==\n1",
        "\x00",
        "(1, 2)",
    ],
)
def test_everything_else_is_refused(text):
    """What is not listed is refused when it is read, in one line that names file and key."""
    with pytest.raises(UsageError, match=r"x\.toml: rule 1\.require: ") as caught:
        Expression.parse(text, "x.toml: rule 1.require")
    assert "\n" not in str(caught.value)


def test_nothing_is_executed(tmp_path):
    """An expression that would write a file if executed leaves no file."""
    victim = tmp_path / "victim"
    with pytest.raises(UsageError):
        Expression.parse(f"open({str(victim)!r}, 'w') == 1", "x.toml: rule 1.require")
    assert not victim.exists()


def test_position_is_named():
    """The refusal names the column, counted in characters."""
    with pytest.raises(UsageError, match="at column 20"):
        Expression.parse("'é' == 'é' and 1 < threads", "x.toml: a.when")


@pytest.mark.parametrize(
    "text",
    ["(" * 400 + "1" + ")" * 400, "not " * 240 + "true", "-" * 900 + "1", "1 < " * 200 + "1 +" * 60 + "1", "1" * 5000],
)
def test_hostile_sizes_are_refused(text):
    """Deep nesting and long texts end in a refusal, not in a crash."""
    with pytest.raises(UsageError):
        Expression.parse(text, "x.toml: a.when")


@pytest.mark.parametrize(
    "text",
    [
        "session.threads == 'two'",
        "session.mode < 'z'",
        "session.spin + 1 == 2",
        "session.threads and session.spin",
        "not session.mode",
        "'a' in session.mode",
        "host.cpu_budget // 0 == 1",
        "1e308 * 10 > 1",
        "session.threads",
        "min(session.mode, 1) == 1",
    ],
)
def test_kinds_that_do_not_fit_are_errors(text):
    """Operators do not convert: a mismatch is an error with file, key and text."""
    with pytest.raises(UsageError, match=r"x\.toml: rule 1\.require: "):
        truth(text)


def test_number_refuses_texts():
    """A bound that computes no number is an error."""
    with pytest.raises(UsageError, match="is not a number"):
        Expression.parse("session.mode", "x.toml: a.max").number(NAMES)


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(text):
    """No text raises anything but a UsageError of one line."""
    try:
        Expression.parse(text, "x")
    except UsageError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - both ends are right


@given(
    st.lists(
        st.sampled_from(
            [
                "()",
                "not",
                "in",
                "and",
                "or",
                "<",
                "==",
                "+",
                "-",
                "*",
                "//",
                "min",
                "max",
                ",",
                "1",
                "'a'",
                "host.isa",
                "session.x",
                "[",
                "]",
                ".",
                "true",
            ]
        )
    )
)
def test_any_tokens_are_computed_or_refused(tokens):
    """Whatever parses also computes, or is refused."""
    try:
        Expression.parse(" ".join(tokens), "x").truth({"session.x": 1, "host.isa": ("a",)})
    except UsageError as error:
        assert str(error).startswith("x: ")  # noqa: PT017 - as above


def test_names_of_parameters_are_told_from_facts():
    """An expression knows which names are parameters."""
    parsed = Expression.parse("session.threads < host.cpu_budget", "x")
    assert parsed.parameters == {"session.threads"}
    assert parsed.names == {"session.threads", "host.cpu_budget"}
