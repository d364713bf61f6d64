"""The space on one host: lists, completes, varies and translates its points; it measures and chooses nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from random import Random

from tuner.errors import UsageError
from tuner.records.config import Config
from tuner.records.measurement import Notice
from tuner.space import describing, judging, mapping, moving
from tuner.space.domains import Domain
from tuner.space.naming import nearest
from tuner.space.parameters import Value
from tuner.space.walking import Exhausted, Point, ResolvedBackend, ResolvedParameter, Tally, count_estimate, walk

__all__ = ["LIMIT", "ResolvedSpace"]

LIMIT = 20_000
"""Points that are listed at most; beyond, they are sampled."""

_LOOKS_PER_POINT = 50


@dataclass
class ResolvedSpace:
    """Backends that have at least one valid point here.

    Attributes:
        digest: Of the files, not of this host.
        n_looks: Values that the last listing looked at: its cost.
    """

    backends: Mapping[str, ResolvedBackend]
    notices: tuple[Notice, ...]
    digest: str
    n_looks: int = 0
    _listed: dict[int, list[Point] | None] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, backends: Iterable[ResolvedBackend], notices: Iterable[Notice], digest: str) -> "ResolvedSpace":
        """Return the space without backends that have no valid point, which are named in a notice."""
        kept: dict[str, ResolvedBackend] = {}
        said = list(notices)
        for backend in backends:
            if moving.first_point(backend, {}) is None:
                detail = f"{backend.name}: no point keeps all rules on this host"
                said.append(Notice(code="backend_dropped", detail=detail, remedy="autotune show space lists the rules"))
            else:
                kept[backend.name] = backend
        return cls(kept, tuple(said), digest)

    def is_listed(self, limit: int = LIMIT) -> bool:
        """Return whether there are at most `limit` points, so that they can be listed and the size is exact."""
        if limit not in self._listed:
            tally = Tally(_LOOKS_PER_POINT * (limit + 1))
            points = chain.from_iterable(walk(backend, _all, tally) for backend in self.backends.values())
            try:
                found = list(islice(points, limit + 1))
            except Exhausted:
                found = []
            is_whole = len(found) <= limit and tally.spent < tally.allowed
            self.n_looks = tally.spent
            self._listed[limit] = found if is_whole else None
        return self._listed[limit] is not None

    def enumerate(self, limit: int = LIMIT) -> list[Point]:
        """Return all valid canonical points, each once, always in the same order.

        Raises:
            UsageError: More than `limit`; ask `is_listed` first and `sample` instead.
        """
        if not self.is_listed(limit):
            raise UsageError(f"the space has about {self.size(limit)} points, more than {limit}; narrow it with --fix")
        return [dict(point) for point in self._listed[limit] or ()]

    def size(self, limit: int = LIMIT) -> int:
        """Return the number of points: exact if `is_listed(limit)`, else an estimate above `limit`."""
        if self.is_listed(limit):
            return len(self._listed[limit] or ())
        return max(limit + 1, sum(count_estimate(backend) for backend in self.backends.values()))

    def sample(self, rng: Random, n: int) -> list[Point]:
        """Return up to `n` different valid points at random: evenly if the space is listed, else value by value."""
        if self.is_listed():
            points = self.enumerate()
            return rng.sample(points, min(n, len(points)))
        return moving.sampled(tuple(self.backends.values()), rng, n)

    def neighbours(self, point: Mapping[str, Value]) -> list[Point]:
        """Return the valid points of the same backend that differ in one value.

        What the new value makes inactive is left out, what it makes active starts at its prior. Ranges of more than
        16 values are taken next to the value, at half, at double and at the ends.
        """
        return moving.neighbours(self._backend(point), point)

    def complete(self, partial: Mapping[str, Value]) -> Point:
        """Return a valid point with the values of `partial`, the others at or near their priors.

        Values of parameters that are not active are left out. Without ``backend`` the first one is taken.

        Raises:
            UsageError: A value that does not exist here, or values that no valid point has together.
        """
        backend = self._backend({"backend": next(iter(self.backends), ""), **partial})
        given = {name: value for name, value in partial.items() if name != "backend"}
        for name, value in given.items():
            judging.check_value(backend, name, value)
        point = moving.first_point(backend, given)
        if point is None:
            asked = ", ".join(f"{name}={value}" for name, value in given.items()) or "anything"
            raise UsageError(f"{backend.name}: no valid point has {asked}; change one of them")
        return point

    def violations(self, point: Mapping[str, Value]) -> tuple[str, ...]:
        """Return why `point` is not a valid canonical point; empty if it is."""
        name = str(point.get("backend", ""))
        if name not in self.backends:
            return (f"backend {name!r} is not in this space; {nearest(name, self.backends)}",)
        return judging.violations(self.backends[name], point)

    def to_config(self, point: Mapping[str, Value]) -> Config:
        """Return the configuration of a valid point.

        Raises:
            UsageError: The point is not valid; the first reason.
        """
        for reason in self.violations(point):
            raise UsageError(f"not a point of this space: {reason}")
        return mapping.config_of(self._backend(point), point)

    def to_point(self, config: Config) -> Point | None:
        """Return the valid point that gives `config`, None if there is none."""
        backend = self.backends.get(config.backend)
        point = backend and mapping.point_of(backend, config)
        return point if point and not self.violations(point) else None

    def suggest(self, choose: Callable[[str, Domain], Value]) -> Point:
        """Return the point that `choose` picks value by value; rules are not applied, so ask `violations` after.

        `choose` gets a name and the values, for every active parameter with more than one; the same name always comes
        with the same values, so they can be fixed categories.
        """
        name = next(iter(self.backends), "")
        if len(self.backends) > 1:
            name = str(choose("backend", Domain("choice", tuple(self.backends))))
        return moving.suggested(self._backend({"backend": name}), tuple(self.backends.values()), choose)

    def numerics_key(self, point: Mapping[str, Value]) -> str:
        """Return the key of all points that compute the same outputs: backend, chain, its settings, numerics values."""
        return judging.numerics_key(self._backend(point), point)

    def artifact_points(self) -> list[Point]:
        """Return one point for every backend, chain and precision at prior settings: where screening starts.

        Precision is every session parameter marked `numerics` whose name ends in ``precision``.
        """
        return [point for backend in self.backends.values() for point in moving.artifact_points(backend)]

    def describe(self) -> dict[str, object]:
        """Return the space as JSON: size, and for every backend its chains, parameters and rules."""
        head = {"space_sha256": self.digest, "size": self.size(), "is_exact": self.is_listed()}
        backends = [describing.described(backend) for backend in self.backends.values()]
        notices = [notice.model_dump(mode="json") for notice in self.notices]
        return {**head, "backends": backends, "notices": notices}

    def parameters(self, backend: str) -> Sequence[str]:
        """Return the names of all parameters that can be active in `backend`, in order.

        Raises:
            UsageError: No such backend here.
        """
        return tuple(self._backend({"backend": backend}).by_name)

    def _backend(self, point: Mapping[str, Value]) -> ResolvedBackend:
        name = str(point.get("backend", ""))
        if name not in self.backends:
            raise UsageError(f"backend {name!r} is not in this space; {nearest(name, self.backends)}")
        return self.backends[name]


def _all(parameter: ResolvedParameter) -> Sequence[Value]:
    return parameter.domain.values
