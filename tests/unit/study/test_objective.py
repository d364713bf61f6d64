"""Targets, constraints and their figures."""

import pytest

from tuner.errors import UsageError
from tuner.records.measurement import Fidelity, Latency, Measurement
from tuner.records.workload import Constraint
from tuner.study.objective import (
    BYTES,
    SECONDS,
    SHARES,
    constraint_key,
    default_constraints,
    figure,
    is_feasible,
    known_path,
    parse_objective,
    parse_value,
    paths,
    violation,
    violations,
)


def below(bound, path="latency_s.p50"):
    """Return a constraint with an upper bound."""
    return Constraint(path=path, operator="<=", bound=bound)


def above(bound, path="fidelity.cosine_min"):
    """Return a constraint with a lower bound."""
    return Constraint(path=path, operator=">=", bound=bound)


@pytest.mark.parametrize(
    ("text", "units", "value"),
    [
        ("30ms", SECONDS, 0.03),
        ("2GiB", BYTES, 2147483648.0),
        ("1.5s", SECONDS, 1.5),
        ("250us", SECONDS, 0.00025),
        ("250µs", SECONDS, 0.00025),
        ("3GB", BYTES, 3e9),
        ("95%", SHARES, 0.95),
        ("0.99", SHARES, 0.99),
        (".5", SECONDS, 0.5),
        ("-1", SHARES, -1.0),
        ("1e-3", SHARES, 0.001),
        (" 7 MiB ", BYTES, 7340032.0),
    ],
)
def test_values_with_units(text, units, value):
    """Figures are read into seconds, bytes and plain numbers."""
    assert parse_value(text, units) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "ms", "30 minutes", "1,5s", "nan", "inf", "30MS", "0x10", "1 2", "1e999"])
def test_what_is_no_value(text):
    """Anything else is refused with the units that are known."""
    with pytest.raises(UsageError, match="is not a figure with a unit"):
        parse_value(text, SECONDS)


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("latency_s.p99=30GiB", "not a figure with a unit .s ms us µs ns"),
        ("peak_rss_bytes=30ms", "not a figure with a unit .B kB MB"),
        ("fidelity.cosine_min=1s", "not a figure with a unit .%"),
        ("throughput=5%", "not a figure without a unit"),
        ("latency_s.p50=-3ms", "latency_s.p50: -3ms limits nothing"),
        ("load_time=0", "load_s: 0 limits nothing"),
        ("fidelity.cosine_min=1.5", "from -1 to 1"),
        ("fidelity.top1_agreement=101%", "from 0 to 1"),
        ("fidelity.rel_error_max=-0.1", "from 0 up"),
    ],
)
def test_limits_that_cannot_be(limit, message):
    """A unit of something else and a figure that the path never has are refused before anything is measured."""
    with pytest.raises(UsageError, match=message):
        parse_objective("p50", at_most=[limit])
    path, _, value = limit.partition("=")
    with pytest.raises(UsageError, match=message):
        parse_objective("p50", expressions=[f"{path} >= {value}"])


@pytest.mark.parametrize("limit", ["fidelity.metric_loss=-0.5", "fidelity.cosine_min=-1", "fidelity.metric=200%"])
def test_limits_at_the_edge(limit):
    """A metric of the user's has any values, and the end of a range may be a limit."""
    assert len(parse_objective("p50", at_least=[limit]).constraints) == 1


@pytest.mark.parametrize(
    ("short", "path"),
    [
        ("p50", "latency_s.p50"),
        ("p99", "latency_s.p99"),
        ("mean", "latency_s.mean"),
        ("throughput", "throughput_items_per_s"),
        ("memory", "peak_rss_bytes"),
        ("load_time", "load_s"),
        ("cpu_s_per_item", "cpu_s_per_item"),
    ],
)
def test_short_targets(short, path):
    """Short names stand for measurement paths; a path stands for itself."""
    assert parse_objective(short).target == path


@pytest.mark.parametrize("path", paths())
def test_every_path_is_in_a_measurement(path):
    """A path that may be named leads to a field of a measurement."""
    whole = Measurement(latency_s=Latency(), fidelity=Fidelity(method="graph"))
    holder = whole
    for part in path.split(".")[:-1]:
        holder = getattr(holder, part)
    assert hasattr(holder, path.split(".")[-1])


@pytest.mark.parametrize(
    ("text", "near"), [("p500", "p50"), ("latency.p50", "latency_s.p50"), ("troughput", "throughput")]
)
def test_unknown_target_names_the_nearest(text, near):
    """A typing error is answered with what was meant."""
    with pytest.raises(UsageError, match=rf"^unknown target {text!r}: did you mean {near}\?$"):
        known_path(text, what="target")


def test_unknown_target_without_a_near_one():
    """What resembles nothing is answered with what is known."""
    with pytest.raises(UsageError, match=r"unknown target 'zzz': known: p50, p90"):
        known_path("zzz", what="target")


def test_fidelity_is_no_target():
    """Fidelity is limited, not optimised."""
    with pytest.raises(UsageError, match="--min or --max"):
        parse_objective("fidelity.cosine_min")


def test_throughput_is_maximised():
    """More throughput is better; of all others less."""
    assert [parse_objective(name).direction for name in ("throughput", "p50")] == ["maximize", "minimize"]


def test_constraints_of_all_options():
    """--max, --min and --constraint become constraints in this order."""
    objective = parse_objective(
        "p50", at_most=["latency_s.p99=30ms"], at_least=["fidelity.cosine_min=0.99"], expressions=["load_s <= 5s"]
    )
    assert objective.constraints == (below(0.03, "latency_s.p99"), above(0.99), below(5.0, "load_s"))


def test_short_names_in_constraints():
    """A constraint may use a target's short name."""
    assert parse_objective("p50", at_most=["memory=2GiB"]).constraints == (below(2147483648.0, "peak_rss_bytes"),)


@pytest.mark.parametrize("text", ["load_s<5s", "load_s <= 5s", "load_s<=5s"])
def test_expressions(text):
    """Strict and weak comparisons of continuous figures are the same."""
    assert parse_objective("p50", expressions=[text]).constraints == (below(5.0, "load_s"),)


def test_expression_without_operator():
    """The shell took the operator: the error says to quote it."""
    with pytest.raises(UsageError, match="quote it"):
        parse_objective("p50", expressions=["load_s"])


def test_assignment_without_equals():
    """The error shows how it is written."""
    with pytest.raises(UsageError, match=r"--max 'p99': write --max PATH=VALUE"):
        parse_objective("p50", at_most=["p99"])


def test_unknown_path_in_a_constraint():
    """A constraint's path is checked like a target."""
    with pytest.raises(UsageError, match=r"unknown path 'latency_s.p98': did you mean"):
        parse_objective("p50", at_most=["latency_s.p98=1s"])


def test_defaults_are_added():
    """A default limit holds where the user limits something else."""
    objective = parse_objective("p50", at_most=["load_s=1s"], defaults=default_constraints("embedding"))
    assert objective.constraints[1:] == (above(0.99),)


def test_defaults_give_way():
    """A user's limit on the same path replaces the default."""
    objective = parse_objective("p50", at_least=["fidelity.cosine_min=0.9"], defaults=default_constraints("embedding"))
    assert objective.constraints == (above(0.9),)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("embedding", [("fidelity.cosine_min", ">=", 0.99)]),
        ("classes", [("fidelity.top1_agreement", ">=", 0.99)]),
        ("graph", [("fidelity.rel_error_max", "<=", 0.02)]),
    ],
)
def test_default_limits(method, expected):
    """The contract's limits by way of judging."""
    assert [(one.path, one.operator, one.bound) for one in default_constraints(method)] == expected


def test_a_constraint_given_twice_is_one():
    """Saying a limit twice changes nothing."""
    assert parse_objective("p50", at_most=["p99=30ms", "p99=0.03"]).constraints == (below(0.03, "latency_s.p99"),)


@pytest.mark.parametrize("constraint", [below(0.01), above(0.01, "latency_s.p50")])
def test_exactly_met_holds(measurement, constraint):
    """A figure on the bound keeps the constraint."""
    assert violation(measurement(0.01), constraint) == 0.0


def test_violation_is_relative(measurement):
    """Twice the bound is missed by one."""
    assert violation(measurement(0.02), below(0.01)) == pytest.approx(1.0)


def test_violation_of_a_zero_bound(measurement):
    """A bound of zero is missed by the figure itself."""
    assert violation(measurement(0.02), below(0.0)) == pytest.approx(0.02)


def test_unknown_figure_has_no_violation(measurement):
    """A figure that is not there decides nothing."""
    assert violation(measurement(0.02), below(0.01, "latency_s.p99")) is None


def test_unknown_figure_counts_as_met(measurement):
    """A short trial cannot decide p99: it is met in the search, and decided in the playoff."""
    objective = parse_objective("p50", at_most=["p99=1us"])
    assert violations(measurement(0.02), objective) == {"latency_s.p99<=1e-06": 0.0}


@pytest.mark.parametrize(("bound", "holds"), [("20ms", True), ("19.999ms", False)])
def test_feasible(measurement, bound, holds):
    """A measurement is feasible if every constraint holds."""
    objective = parse_objective("p50", at_most=["load_s=2s", f"p50={bound}"])
    assert is_feasible(measurement(0.02), objective) is holds


def test_figure_of_a_missing_branch():
    """A measurement without fidelity has no figure of it."""
    assert figure(Measurement(), "fidelity.cosine_min") is None


def test_constraint_key():
    """The key names path, operator and bound."""
    assert constraint_key(below(0.03, "latency_s.p99")) == "latency_s.p99<=0.03"


def test_constraint_keys_differ():
    """Two limits that differ in the eighth figure are two keys."""
    assert constraint_key(below(2147483648.0)) != constraint_key(below(2147483649.0))
