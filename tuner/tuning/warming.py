"""Where a search starts that knows an older result: the leading families' points in the old order; no old figures."""

import contextlib
import math
from collections.abc import Iterable, Sequence
from itertools import zip_longest

import numpy as np

from tuner.errors import UsageError
from tuner.records.base import Scalar
from tuner.records.config import Config
from tuner.space.parameters import Value
from tuner.space.resolved import ResolvedSpace
from tuner.space.walking import Point
from tuner.study.encoding import PointTable
from tuner.study.portfolio import Portfolio
from tuner.study.store import TrialRecord
from tuner.study.trying import Trials, tried_of
from tuner.tuning.earlier import Earlier

__all__ = ["nearest_point", "screened_cells", "warm_rows"]

NEIGHBOURS = 8
FAMILIES = 4
MOST = 12
MARGIN = math.log(1.25)
"""How much slower than the old best the old trials may expect a point to be that is tried before screening."""


def warm_rows(table: PointTable, earlier: Earlier) -> list[int]:
    """Return rows of `table` to try first, each once; the table may grow.

    Families (backend, artifact, precision) that were near the best in the old trials take turns, the best config's
    first; each gives the best it had, then its points as a model of the old trials orders them, tried or not. Another
    version of a library may swap families that were close, and moves points within a family together. Without old
    trials it is the best config, its neighbours, and the other configs.

    A config that is no point here (another host, another version of an engine) is replaced by the point nearest to it;
    one whose backend is gone is left out.
    """
    points = [
        point for point in (nearest_point(table.space, config) for config in earlier.configs) if point is not None
    ]
    if not points:
        return []
    rows = table.extend(points)
    families = _families(table, rows[0], earlier.records)
    if families:
        return [row for turn in zip_longest(*families) for row in turn if row is not None][:MOST]
    return list(dict.fromkeys([rows[0], *_near(table, points[0]), *rows[1:]]))


def screened_cells(table: PointTable, earlier: Earlier) -> set[int]:
    """Return the families that the old trials leave nothing to screen of; none where model or host are others."""
    if not earlier.is_alike:
        return set()
    return set(table.cells[list(_old_trials(table, earlier.records).tried)].tolist())


def _old_trials(table: PointTable, records: Sequence[TrialRecord]) -> Trials:
    """Return the old trials of what is a point here."""
    trials = Trials(table)
    for record in records:
        point = table.space.to_point(record.config)
        if point is not None:
            trials.note(tried_of(record, table.extend([point])[0]))
    return trials


def _families(table: PointTable, best: int, records: Sequence[TrialRecord]) -> list[list[int]]:
    """Return the rows of the leading families in the old order, `best` and its family first; empty without trials."""
    old = Portfolio(table, seed=0)
    for item in _old_trials(table, records).tried.values():
        old.note(item)
    posterior = old.posterior()
    good = [item.row for item in old.trials.known() if item.label == "feasible"]
    if posterior is None or not good:
        return []
    is_wanted = old.trials.open_rows()
    is_wanted[good] = True
    is_wanted &= np.isin(table.cells, table.cells[good]) & (posterior.mean <= posterior.mean[best] + MARGIN)
    ordered = [row for row in np.argsort(posterior.mean, kind="stable").tolist() if is_wanted[row]]
    tried = [row for row in ordered if row in good]
    leaders = {int(table.cells[row]): row for row in reversed(tried)}
    leading = [row for row in tried if row in leaders.values()]
    found: dict[int, list[int]] = {}
    for row in dict.fromkeys([best, *leading, *ordered]):
        found.setdefault(int(table.cells[row]), []).append(row)
    return list(found.values())[:FAMILIES]


def _near(table: PointTable, best: Point) -> list[int]:
    """Return the rows of the point's neighbours, those with the same artifact first, then those with its process."""
    space = table.space
    config = space.to_config(best)

    def distance(point: Point) -> tuple[bool, bool]:
        other = space.to_config(point)
        return other.artifact_digest() != config.artifact_digest(), other.process != config.process

    return table.extend(sorted(space.neighbours(best), key=distance)[:NEIGHBOURS])


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
