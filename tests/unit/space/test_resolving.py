"""A space on one host: bounds, what the host lacks, dropped steps, fixed values."""

import pytest

from tuner.errors import UsageError

ENGINE = """
backend = "engine"
[session.threads]
kind = "integer"
min = 1
max = "host.cpu_budget"
prior = "host.physical_cores"
[session.precision]
kind = "choice"
values = ["float32", "bfloat16"]
default = "float32"
prior = "bfloat16"
numerics = true
[session.spin]
kind = "choice"
values = [true, false]
when = "session.threads > 1"
[[rule]]
require = "session.precision != 'bfloat16' or 'amx_bf16' in host.isa"
reason = "no such instructions"
"""
AMX = {"isa": ("amx_bf16",)}
PLAIN = {"isa": ("avx2",)}
SHRINK = 'step = "shrink"\n[artifact.shrink.level]\nkind = "choice"\nvalues = [1, 2]\n'
CONVERT = 'step = "convert"\n[artifact.convert.how]\nkind = "choice"\nvalues = ["a", "b"]\n'
CHAINS = 'backend = "engine"\n[artifacts]\nraw = []\nplain = ["convert"]\nsmall = ["convert", "shrink"]\n'


def codes(space):
    """Return the codes of the notices."""
    return [notice.code for notice in space.notices]


def domain(space, name, backend="engine"):
    """Return the values of a parameter."""
    return list(space.backends[backend].by_name[name].domain.values)


def test_bounds_become_numbers(resolve):
    """A bound is computed from the host."""
    assert domain(resolve(ENGINE, host={"cpu_budget": 3, **AMX}), "session.threads") == [1, 2, 3]


def test_one_value_stays_as_a_constant(resolve):
    """A range that collapses is still a parameter, with one value."""
    space = resolve(ENGINE, host={"cpu_budget": 1, **PLAIN})
    assert space.enumerate() == [
        {
            "backend": "engine",
            "artifact.chain": "source",
            "session.threads": 1,
            "session.precision": "float32",
        }
    ]


def test_impossible_values_are_dropped_with_one_notice(resolve):
    """What the host lacks is left out, and one notice gives the rule's reason."""
    space = resolve(ENGINE, host=PLAIN)
    assert domain(space, "session.precision") == ["float32"]
    assert [notice.detail for notice in space.notices] == [
        "engine: session.precision = bfloat16 is left out: no such instructions"
    ]


def test_unknown_facts_drop_nothing(resolve):
    """A fact that is not known breaks no rule."""
    assert domain(resolve(ENGINE), "session.precision") == ["float32", "bfloat16"]


def test_unknown_bound_is_an_error(resolve):
    """A bound that cannot be known is an error with file and key."""
    with pytest.raises(UsageError, match=r"1\.toml: session\.threads\.max: 'host\.cpu_budget' is unknown on this host"):
        resolve(ENGINE, host={"cpu_budget": None})


def test_starts_move_into_the_range(resolve):
    """A prior above the bound becomes the bound."""
    parameter = resolve(ENGINE, host={"physical_cores": 64, **AMX}).backends["engine"].by_name["session.threads"]
    assert (parameter.prior, parameter.default) == (2, None)


def test_prior_falls_back_to_the_default(resolve):
    """A prior that the host lacks gives way to the default."""
    assert resolve(ENGINE, host=PLAIN).backends["engine"].by_name["session.precision"].prior == "float32"


def test_conditions_on_facts_are_settled(resolve):
    """A parameter whose condition is false here is gone, one whose condition is true has none."""
    text = ENGINE + '[session.a]\nkind="choice"\nvalues=[1]\nwhen="host.smt"\n'.replace("[[rule]]", "")
    known = resolve(text, host={"smt": False, **AMX})
    assert "session.a" not in known.parameters("engine")
    known = resolve(text, host={"smt": True, **AMX})
    assert known.backends["engine"].by_name["session.a"].when is None


def test_broken_rule_over_facts_drops_the_backend(resolve):
    """A rule that names no parameter stands for the whole backend."""
    space = resolve(ENGINE + '[[rule]]\nrequire = "host.cpu_budget > 8"\nreason = "needs many CPUs"', host=AMX)
    assert not space.backends
    assert [notice.detail for notice in space.notices] == ["engine: needs many CPUs"]
    assert space.enumerate() == []


def test_backend_without_valid_points_is_dropped(resolve):
    """Rules that contradict each other leave nothing, which is said."""
    rules = "".join(
        f'[[rule]]\nrequire = "session.threads {sign} 1 or session.precision == {value!r}"\nreason = "r"\n'
        for sign, value in (("<", "float32"), ("<", "bfloat16"))
    )
    space = resolve(ENGINE + rules, host=AMX)
    assert codes(space) == ["backend_dropped"]
    assert not space.backends


def test_chosen_backends_only(load):
    """Only the named backends stay; an unknown one is refused with the nearest."""
    space = load(ENGINE, 'backend = "other"')
    assert list(space.resolve({"cpu_budget": 2}, {}, {}, backends=["other"]).backends) == ["other"]
    with pytest.raises(UsageError, match="describes backend 'engin'; nearest known: engine"):
        space.resolve({"cpu_budget": 2}, {}, {}, backends=["engin"])


def test_equal_chains_after_dropping_are_one(resolve):
    """A step that the source makes superfluous leaves its chains, and equal chains become one."""
    space = resolve(CHAINS, SHRINK, CONVERT, dropped_steps=["convert"])
    assert space.backends["engine"].chains == {"raw": (), "small": ("shrink",)}
    assert len(space.enumerate()) == 1 + 2
    assert "artifact.convert.how" not in space.parameters("engine")


def test_settings_are_active_with_their_step(resolve):
    """A step's settings have values in the chains that hold the step, and only there."""
    points = resolve(CHAINS, SHRINK, CONVERT).enumerate()
    sizes = {point["artifact.chain"]: len(point) for point in points}
    assert len(points) == 1 + 2 + 4
    assert sizes == {"raw": 2, "plain": 3, "small": 4}


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("session.threads", "2", [2]),
        ("session.precision", "float32", ["float32"]),
        ("session.spin", "False", [False]),
        ("engine/session.threads", "1", [1]),
        ("artifact.chain", "source", ["source"]),
    ],
)
def test_fixed(resolve, key, text, expected):
    """A fixed parameter has one value, read by the parameter's kind."""
    assert domain(resolve(ENGINE, host=AMX, fixed={key: text}), key.removeprefix("engine/")) == expected


def test_fixed_condition(resolve):
    """A fixed value binds only where its parameter is active."""
    points = resolve(ENGINE, host=PLAIN, fixed={"session.spin": "false"}).enumerate()
    assert [point.get("session.spin") for point in points] == [None, False]


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("session.thread", "2", r"--fix session\.thread=2: unknown parameter .* nearest known: session\.threads"),
        ("session.threads", "3", r"--fix session\.threads=3: engine: .* cannot be '3'; it can be 1, 2"),
        ("session.threads", "1.5", r"it can be 1, 2"),
        ("session.threads", "two", r"it can be 1, 2"),
        ("session.precision", "float16", r"it can be float32, bfloat16"),
        ("session.spin", "1", r"it can be true, false"),
    ],
)
def test_fixed_refusal(resolve, key, text, message):
    """An unknown key or a value that nothing has is refused, with what is possible."""
    with pytest.raises(UsageError, match=message):
        resolve(ENGINE, host=AMX, fixed={key: text})


def test_fixed_value_that_one_backend_lacks(resolve):
    """A backend that cannot take the fixed value is dropped with a notice; the others stay."""
    other = 'backend = "other"\n[session.threads]\nkind = "choice"\nvalues = [7]'
    space = resolve(ENGINE, other, host=AMX, fixed={"session.threads": "7"})
    assert list(space.backends) == ["other"]
    assert codes(space) == ["fix_impossible"]


def test_fixed_against_a_rule_of_the_host(resolve):
    """A precision that the host lacks can be asked for all the same, and that is said."""
    space = resolve(ENGINE, host=PLAIN, fixed={"session.precision": "bfloat16"})
    assert domain(space, "session.precision") == ["bfloat16"]
    assert codes(space) == ["fixed_against_rule"]
    assert len(space.enumerate()) == 3


def test_fixed_values_that_contradict_each_other(resolve):
    """Two fixed values that break a rule together are refused with its reason."""
    rule = '[[rule]]\nrequire = "session.threads <= process.placement.n_cpus"\nreason = "too many threads"'
    shared = '[process.placement.n_cpus]\nkind = "integer"\nmin = 1\nmax = 2'
    with pytest.raises(UsageError, match=r"session\.threads cannot be 2 with the other fixed values: too many threads"):
        resolve(ENGINE + rule, shared, host=AMX, fixed={"session.threads": "2", "process.placement.n_cpus": "1"})


def test_fixed_without_effect(resolve):
    """A fixed parameter that the host has no use for is said to have no effect."""
    text = ENGINE + '[session.a]\nkind = "choice"\nvalues = [1]\nwhen = "host.smt"'
    assert codes(resolve(text, host={"smt": False, **AMX}, fixed={"session.a": "1"})) == ["fix_without_effect"]


def test_real_grid(resolve):
    """A real is searched on its step, on nine points, or on nine ratios."""
    text = 'backend = "engine"\n[session.a]\nkind = "real"\nmin = 0.0\nmax = 0.3\nstep = 0.1\n'
    text += '[session.b]\nkind = "real"\nmin = 0\nmax = 8\n[session.c]\nkind = "real"\nmin = 1\nmax = 256\nlog = true'
    space = resolve(text)
    assert domain(space, "session.a") == [0.0, 0.1, 0.2, 0.3]
    assert domain(space, "session.b") == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert domain(space, "session.c") == pytest.approx([1, 2, 4, 8, 16, 32, 64, 128, 256])


def test_fixed_real_may_lie_between(resolve):
    """A fixed real need not be a point of the grid."""
    text = 'backend = "engine"\n[session.b]\nkind = "real"\nmin = 0\nmax = 8'
    assert domain(resolve(text, fixed={"session.b": "2.5"}), "session.b") == [2.5]


def test_fine_grid_is_refused(resolve):
    """A step that makes too many values is refused."""
    with pytest.raises(UsageError, match=r"session\.b\.step: gives 80001 values"):
        resolve('backend = "engine"\n[session.b]\nkind = "real"\nmin = 0\nmax = 8\nstep = 0.0001')
