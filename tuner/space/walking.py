"""Walks over the valid points of one backend, cutting branches as soon as a rule is broken; it maps nothing."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random

from tuner.space.declared import Rule
from tuner.space.domains import Domain
from tuner.space.expressions import Expression
from tuner.space.parameters import Value
from tuner.space.tables import CHAIN

__all__ = ["Exhausted", "Point", "ResolvedBackend", "ResolvedParameter", "Tally", "count_estimate", "walk"]

Point = dict[str, Value]
"""Value by name: ``backend`` and every active parameter, nothing else."""

Order = Callable[["ResolvedParameter"], Iterable[Value]]


@dataclass(frozen=True)
class ResolvedParameter:
    """A parameter with its values on this host.

    Attributes:
        default: The engine's own value, None if the file states none that is possible here.
        prior: Where screening starts; None only where no value is possible.
        step: The build step it belongs to.
    """

    name: str
    domain: Domain
    default: Value | None
    prior: Value | None
    numerics: bool
    when: Expression | None
    reason: str
    step: str | None


@dataclass(frozen=True)
class ResolvedBackend:
    """One backend on this host.

    Attributes:
        chains: Build steps by chain name, without those that drop out.
        parameters: Each stands after those that its `when` names.
        rules: Rules over two or more parameters; the others have shaped the domains.
        facts: Values of the names that are not parameters.
    """

    name: str
    chains: Mapping[str, tuple[str, ...]]
    parameters: tuple[ResolvedParameter, ...]
    rules: tuple[Rule, ...]
    facts: Mapping[str, object]

    @cached_property
    def by_name(self) -> dict[str, ResolvedParameter]:
        """The parameters by name."""
        return {parameter.name: parameter for parameter in self.parameters}

    @cached_property
    def watchers(self) -> dict[str, tuple[Rule, ...]]:
        """The rules that name each parameter."""
        return {name: tuple(rule for rule in self.rules if name in rule.require.parameters) for name in self.by_name}

    def is_active(self, parameter: ResolvedParameter, names: Mapping[str, object]) -> bool:
        """Return whether `parameter` has a value, given the facts and the values of those before it."""
        if parameter.step and parameter.step not in self.chains.get(str(names.get(CHAIN)), ()):
            return False
        return parameter.when is None or parameter.when.truth(names) is True


class Exhausted(Exception):  # noqa: N818 - the end of an allowance, not a defect
    """A walk has looked at as many values as it may."""


@dataclass
class Tally:
    """How many values a walk may look at, and how many it has."""

    allowed: int
    spent: int = 0

    def spend(self) -> None:
        """Count one value.

        Raises:
            Exhausted: None is left.
        """
        if self.spent >= self.allowed:
            raise Exhausted
        self.spent += 1


def walk(backend: ResolvedBackend, order: Order, tally: Tally) -> Iterator[Point]:
    """Yield valid points; `order` gives the values to try of each active parameter.

    A rule over a parameter without a value (not active, or not yet reached) is unknown and holds so far, so each rule
    is looked at whenever one of its parameters gets a value, and cuts the branch as soon as it is surely broken.

    Raises:
        Exhausted: The tally is used up.
    """
    names = dict(backend.facts)
    point: Point = {"backend": backend.name}
    parameters, watchers = backend.parameters, backend.watchers

    def descend(position: int) -> Iterator[Point]:
        if position == len(parameters):
            yield dict(point)
            return
        parameter = parameters[position]
        if not backend.is_active(parameter, names):
            yield from descend(position + 1)
            return
        for value in order(parameter):
            tally.spend()
            point[parameter.name] = names[parameter.name] = value
            if all(rule.require.truth(names) is not False for rule in watchers[parameter.name]):
                yield from descend(position + 1)
            del point[parameter.name], names[parameter.name]

    yield from descend(0)


def count_estimate(backend: ResolvedBackend, *, descents: int = 2000) -> int:
    """Return an unbiased estimate of the number of valid points (Knuth 1975, random descents), always the same one."""
    rng = Random(0)  # noqa: S311 - no secret
    total = 0
    for _ in range(descents):
        width = 1

        def one(parameter: ResolvedParameter) -> Iterable[Value]:
            nonlocal width
            values = parameter.domain.values
            width *= len(values)
            return (rng.choice(values),) if values else ()

        found = next(walk(backend, one, Tally(len(backend.parameters) + 1)), None)
        total += width if found else 0
    return total // descents
