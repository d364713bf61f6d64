"""Reads what the user asks for into an Objective and judges measurements by it; pure."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Literal, cast

from tuner.errors import UsageError
from tuner.records.measurement import Fidelity, Measurement
from tuner.records.workload import Constraint, Objective
from tuner.space.naming import did_you_mean

SHORT_TARGETS: dict[str, str] = {
    "p50": "latency_s.p50",
    "p90": "latency_s.p90",
    "p95": "latency_s.p95",
    "p99": "latency_s.p99",
    "mean": "latency_s.mean",
    "throughput": "throughput_items_per_s",
    "memory": "peak_rss_bytes",
    "load_time": "load_s",
}
MAXIMIZED = frozenset({"throughput_items_per_s"})
SECONDS: dict[str, float] = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
BYTES: dict[str, float] = {
    "": 1.0,
    "B": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
}
SHARES: dict[str, float] = {"": 1.0, "%": 0.01}
PLAIN: dict[str, float] = {"": 1.0}
RANGES: dict[str, tuple[float, float]] = {
    "fidelity.cosine_min": (-1.0, 1.0),
    "fidelity.cosine_mean": (-1.0, 1.0),
    "fidelity.top1_agreement": (0.0, 1.0),
    "fidelity.rel_error_max": (0.0, math.inf),
    "fidelity.abs_error_max": (0.0, math.inf),
    "fidelity.kl_mean": (0.0, math.inf),
    "fidelity.perplexity_ratio": (0.0, math.inf),
}
"""Least and greatest of the figures that have any; times, memory and throughput are above zero besides."""
_VALUE = re.compile(r"^\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-zµ%]*)\s*$")
_EXPRESSION = re.compile(r"^\s*([a-z_][\w.]*)\s*(<=|>=|<|>)\s*(.+)$")


def paths() -> tuple[str, ...]:
    """Return all measurement paths that a target or constraint may name."""
    latency = tuple(f"latency_s.{name}" for name in ("p50", "p90", "p95", "p99", "mean", "min"))
    scalars = ("throughput_items_per_s", "load_s", "first_call_s", "peak_rss_bytes", "cpu_s_per_item")
    gated = (name for name in Fidelity.model_fields if name not in {"method", "details", "n"})
    return latency + scalars + tuple(f"fidelity.{name}" for name in gated)


def known_path(text: str, *, what: str) -> str:
    """Return the full measurement path for a path or short name.

    Raises:
        UsageError: Unknown; the nearest known one is named.
    """
    if text in SHORT_TARGETS:
        return SHORT_TARGETS[text]
    known = paths()
    if text in known:
        return text
    raise UsageError(f"unknown {what} {text!r}: {did_you_mean(text, (*SHORT_TARGETS, *known), SHORT_TARGETS)}")


def parse_value(text: str, units: Mapping[str, float]) -> float:
    """Read a figure with one of `units`: ``30ms`` is 0.03, ``2GiB`` is 2147483648.0.

    Raises:
        UsageError: Not a finite figure, or a unit of something else.
    """
    match = _VALUE.match(text)
    value = float(match[1]) * units[match[2]] if match and match[2] in units else math.inf
    if not math.isfinite(value):
        known = " ".join(unit for unit in units if unit)
        raise UsageError(f"{text!r} is not a figure " + (f"with a unit ({known})" if known else "without a unit"))
    return value


def units_of(path: str) -> Mapping[str, float]:
    """Return the units that a measurement path may be given in."""
    if path.startswith("fidelity."):
        return SHARES
    if path in MAXIMIZED:
        return PLAIN
    return BYTES if path.endswith("_bytes") else SECONDS


def parse_bound(path: str, text: str) -> float:
    """Read the bound of a measurement path.

    Raises:
        UsageError: Not a figure, in a unit of something else, or outside what the path can have at all.
    """
    try:
        bound = parse_value(text, units_of(path))
    except UsageError as error:
        raise UsageError(f"limit of {path}: {error}") from None
    least, greatest = RANGES.get(path, (-math.inf, math.inf))
    if not least <= bound <= greatest:
        values = f"from {least:g} to {greatest:g}" if math.isfinite(greatest) else f"from {least:g} up"
        raise UsageError(f"limit of {path}: {text.strip()} is outside what it can be: its values go {values}")
    if bound <= 0 and not path.startswith("fidelity."):
        raise UsageError(f"limit of {path}: {text.strip()} limits nothing that can be: it is always above zero")
    return bound


def parse_objective(
    target: str,
    *,
    at_most: Iterable[str] = (),
    at_least: Iterable[str] = (),
    expressions: Iterable[str] = (),
    defaults: Iterable[Constraint] = (),
) -> Objective:
    """Build the objective from command-line texts; a default is left out where the user limits the same path.

    Raises:
        UsageError: An unknown path, a missing ``=`` or operator, a figure that cannot be read.
    """
    path = known_path(target, what="target")
    if path.startswith("fidelity."):
        raise UsageError(
            f"target {target!r} is a fidelity figure: limit it with --min or --max and choose a latency target"
        )
    constraints = [_assignment(text, "--max", "<=") for text in at_most]
    constraints += [_assignment(text, "--min", ">=") for text in at_least]
    constraints += [_expression(text) for text in expressions]
    named = {constraint.path for constraint in constraints}
    constraints += [constraint for constraint in defaults if constraint.path not in named]
    direction: Literal["minimize", "maximize"] = "maximize" if path in MAXIMIZED else "minimize"
    return Objective(target=path, direction=direction, constraints=tuple(dict.fromkeys(constraints)))


def _assignment(text: str, option: str, operator: Literal["<=", ">="]) -> Constraint:
    path, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{option} {text!r}: write {option} PATH=VALUE, for example {option} latency_s.p99=30ms")
    known = known_path(path.strip(), what="path")
    return Constraint(path=known, operator=operator, bound=parse_bound(known, value))


def _expression(text: str) -> Constraint:
    match = _EXPRESSION.match(text)
    if not match:
        raise UsageError(f"--constraint {text!r} has no operator: quote it, for example --constraint 'load_s <= 5s'")
    operator = cast("Literal['<=', '>=']", match[2] if len(match[2]) == 2 else match[2] + "=")  # noqa: PLR2004
    path = known_path(match[1], what="path")
    return Constraint(path=path, operator=operator, bound=parse_bound(path, match[3]))


def default_constraints(method: str) -> tuple[Constraint, ...]:
    """Return the contract's fidelity limit for a way of judging."""
    limits: Mapping[str, tuple[Constraint, ...]] = {
        "embedding": (Constraint(path="fidelity.cosine_min", operator=">=", bound=0.99),),
        "classes": (Constraint(path="fidelity.top1_agreement", operator=">=", bound=0.99),),
        "graph": (Constraint(path="fidelity.rel_error_max", operator="<=", bound=0.02),),
    }
    return limits.get(method, ())


def figure(measurement: Measurement, path: str) -> float | None:
    """Return the figure at a measurement path, None where it is unknown."""
    value: object = measurement
    for part in path.split("."):
        value = getattr(value, part, None)
        if value is None:
            return None
    return float(cast("float", value))


def violation(measurement: Measurement, constraint: Constraint) -> float | None:
    """Return by how much a constraint is missed: ≤ 0 holds (exactly met holds), None where the figure is unknown.

    Relative to the bound where it is not zero, so that violations of seconds and bytes can be compared.
    """
    value = figure(measurement, constraint.path)
    if value is None:
        return None
    gap = value - constraint.bound if constraint.operator == "<=" else constraint.bound - value
    return gap / abs(constraint.bound) if constraint.bound else gap


def violations(measurement: Measurement, objective: Objective) -> dict[str, float]:
    """Return every constraint's violation by key; an unknown figure counts as met (decided in the playoff)."""
    return {
        constraint_key(constraint): violation(measurement, constraint) or 0.0 for constraint in objective.constraints
    }


def constraint_key(constraint: Constraint) -> str:
    """Return the name under which a constraint is told to Optuna."""
    return f"{constraint.path}{constraint.operator}{constraint.bound:.12g}"


def is_feasible(measurement: Measurement, objective: Objective) -> bool:
    """Say whether all constraints that can be decided hold."""
    return all(value <= 0 for value in violations(measurement, objective).values())
