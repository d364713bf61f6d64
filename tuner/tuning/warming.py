"""Where a search starts that knows an older result: the old best, near it, and what else was good; no old figures."""

import contextlib
from collections.abc import Iterable, Sequence

from tuner.errors import UsageError
from tuner.records.base import Scalar
from tuner.records.config import Config
from tuner.space.parameters import Value
from tuner.space.resolved import ResolvedSpace
from tuner.space.walking import Point
from tuner.study.store import TrialRecord

NEIGHBOURS = 8
OTHERS = 3


def warm_points(space: ResolvedSpace, configs: Sequence[Config]) -> list[Point]:
    """Return points to try first: the first config and its neighbours, then the other configs, each once.

    A config that is no point of `space` (another host, another version of an engine) is replaced by the point nearest
    to it; one whose backend is gone is left out. Neighbours that need the same artifact come first.
    """
    points = [point for point in (nearest_point(space, config) for config in configs) if point is not None]
    if not points:
        return []
    best = space.to_config(points[0])

    def distance(point: Point) -> tuple[bool, bool]:
        config = space.to_config(point)
        return config.artifact_digest() != best.artifact_digest(), config.process != best.process

    near = sorted(space.neighbours(points[0]), key=distance)[:NEIGHBOURS]
    found: list[Point] = []
    for point in [points[0], *near, *points[1:]]:
        if point not in found:
            found.append(point)
    return found


def nearest_point(space: ResolvedSpace, config: Config) -> Point | None:
    """Return the point of `config`, else the one with most of its values, those of the process given up first."""
    exact = space.to_point(config)
    backend = space.backends.get(config.backend)
    if exact is not None or backend is None:
        return exact
    steps = tuple(step.step for step in config.artifact)
    chain = next((name for name, names in backend.chains.items() if names == steps), None)
    kept: dict[str, Value] = {"backend": config.backend}
    for name, value in [("artifact.chain", chain), *_values(config)]:
        parameter = backend.by_name.get(name)
        member = parameter.domain.find(value) if parameter is not None and value is not None else None
        if member is not None:
            kept[name] = member
    while True:
        with contextlib.suppress(UsageError):
            return space.complete(kept)
        if len(kept) == 1:
            return None
        kept.popitem()


def _values(config: Config) -> Iterable[tuple[str, Scalar]]:
    """Yield the config's values by parameter name, those that matter most first."""
    for step in config.artifact:
        for key, value in step.settings.items():
            yield f"artifact.{step.step}.{key}", value
    for key, value in config.session.items():
        yield f"session.{key}", value
    for key, value in config.process.placement.model_dump().items():
        yield f"process.placement.{key}", value
    yield "process.allocator", config.process.allocator
    for key, value in config.process.env.items():
        yield f"process.env.{key}", value


def good_configs(records: Iterable[TrialRecord], n: int = OTHERS) -> list[Config]:
    """Return the best configs of an older study, one an artifact; their values only order them."""
    measured = [
        record
        for record in records
        if record.state == "measured" and record.value is not None and record.purpose in ("screen", "search")
        if not any(value > 0 for value in record.violations.values())
    ]
    found: dict[tuple[str, str], Config] = {}
    for record in sorted(measured, key=lambda record: record.value or 0.0):
        found.setdefault((record.config.backend, record.config.artifact_digest()), record.config)
    return list(found.values())[:n]
