"""Finds points: the one nearest the priors, neighbours, random ones; it compares none."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from random import Random

from tuner.space.domains import Domain
from tuner.space.parameters import Value, is_same
from tuner.space.tables import CHAIN
from tuner.space.walking import Exhausted, Point, ResolvedBackend, ResolvedParameter, Tally, walk

__all__ = ["artifact_points", "first_point", "neighbours", "sampled", "suggested"]

_LOOKS = 100_000
_FEW = 16
_TRIED = 32


def first_point(backend: ResolvedBackend, given: Mapping[str, Value]) -> Point | None:
    """Return the valid point with the given values whose others are nearest their priors, None if none is found."""

    def order(parameter: ResolvedParameter) -> Iterable[Value]:
        if parameter.name in given:
            return (given[parameter.name],)
        return () if parameter.prior is None else parameter.domain.around(parameter.prior)

    return _first(backend, order, _LOOKS)


def neighbours(backend: ResolvedBackend, point: Mapping[str, Value]) -> list[Point]:
    """Return the valid points that differ from `point` in one value, and in what that makes active or not."""
    found = []
    for parameter in backend.parameters:
        if parameter.name not in point:
            continue
        for value in _others(parameter.domain, point[parameter.name]):
            given = {name: old for name, old in point.items() if name != "backend"} | {parameter.name: value}
            near = first_point(backend, given)
            if near is not None and near not in found:
                found.append(near)
    return found


def sampled(backends: Sequence[ResolvedBackend], rng: Random, n: int) -> list[Point]:
    """Return up to `n` different valid points; every backend, and every value of a parameter, is equally likely."""

    def order(parameter: ResolvedParameter) -> Iterable[Value]:
        values = parameter.domain.values
        return rng.sample(values, min(len(values), _TRIED))

    found: dict[tuple[tuple[str, Value], ...], Point] = {}
    for _ in range(4 * n + 100):
        if len(found) >= n:
            break
        point = _first(rng.choice(backends), order, _LOOKS // 10)
        if point is not None:
            found.setdefault(tuple(point.items()), point)
    return list(found.values())


def suggested(
    backend: ResolvedBackend, backends: Sequence[ResolvedBackend], choose: Callable[[str, Domain], Value]
) -> Point:
    """Return the point that `choose` picks, in order of dependency; rules are not applied."""
    names: dict[str, object] = dict(backend.facts)
    point: Point = {"backend": backend.name}
    for parameter in backend.parameters:
        if backend.is_active(parameter, names):
            domain = parameter.domain
            label = _label(parameter, backend, backends)
            value = choose(label, domain) if len(domain) > 1 else domain.values[0]
            point[parameter.name] = names[parameter.name] = value
    return point


def artifact_points(backend: ResolvedBackend) -> Iterator[Point]:
    """Yield one valid point for every chain and precision that has any, the others at their priors."""
    precisions = [
        parameter
        for parameter in backend.parameters
        if parameter.numerics and parameter.name.startswith("session.") and parameter.name.endswith("precision")
    ]
    seen = []
    for chain in backend.by_name[CHAIN].domain.values:
        for values in product(*(_prior_first(parameter) for parameter in precisions)):
            given = dict(zip((parameter.name for parameter in precisions), values, strict=True))
            point = first_point(backend, {CHAIN: chain, **given})
            if point is not None and point not in seen:
                seen.append(point)
                yield point


def _first(backend: ResolvedBackend, order: Callable[[ResolvedParameter], Iterable[Value]], looks: int) -> Point | None:
    try:
        return next(walk(backend, order, Tally(looks)), None)
    except Exhausted:
        return None


def _prior_first(parameter: ResolvedParameter) -> Iterable[Value]:
    return () if parameter.prior is None else parameter.domain.around(parameter.prior)


def _others(domain: Domain, value: Value) -> list[Value]:
    """Return the values to exchange `value` for."""
    if domain.kind == "choice" or len(domain) <= _FEW:
        return [other for other in domain.values if not is_same(other, value)]
    position, last = domain.values.index(value), len(domain) - 1
    wanted = {0, position // 2, position - 1, position + 1, 2 * position + 1, last} - {position}
    return [domain.values[index] for index in sorted(wanted) if 0 <= index <= last]


def _label(parameter: ResolvedParameter, backend: ResolvedBackend, backends: Sequence[ResolvedBackend]) -> str:
    """Return the parameter's name, with the backend before it unless it means the same in every backend that has it."""
    own = parameter.name == CHAIN or parameter.name.startswith("session.")
    same = all(
        other.by_name[parameter.name].domain == parameter.domain
        for other in backends
        if parameter.name in other.by_name
    )
    return parameter.name if same and not own else f"{backend.name}/{parameter.name}"
