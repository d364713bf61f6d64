"""Says how much each parameter mattered among the trials, and proposes what can go back to its default; pure.

Importance is the share of the variance of ln time over the space that a parameter's own effect explains, by the
additive part of the process that the search uses (effects of more than one parameter are in the rest). Intervals are
from a bootstrap over trials (Efron & Tibshirani 1993, 13.3).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tuner.records.config import Config
from tuner.records.profile import Importance
from tuner.space.parameters import Value, is_same
from tuner.space.resolved import ResolvedSpace
from tuner.study.encoding import PointTable
from tuner.study.store import TrialRecord
from tuner.study.surrogate import Gaussian
from tuner.study.trying import Tried, noise_of, tried_of

__all__ = ["Importance", "importances", "minimal_config"]

RESAMPLES = 30
LEAST_TRIALS = 8
SAME = 0.01
"""Effects (log-ratio) below 1% are none."""


def importances(records: Sequence[TrialRecord], space: ResolvedSpace, *, seed: int = 0) -> dict[str, Importance]:
    """Return the importance of every parameter that varied, largest first; empty with fewer than 8 measured trials.

    Args:
        records: Of one study; those without a value or of another space are passed over.
        space: The space they are points of.
        seed: Of the bootstrap.
    """
    table, tried = _tried(records, space)
    if len(tried) < LEAST_TRIALS:
        return {}
    rng = np.random.default_rng(seed)
    whole = _shares(table, tried, steps=30)
    drawn = [
        _shares(table, [tried[i] for i in rng.integers(0, len(tried), len(tried))], steps=10) for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(np.array(drawn), [0.025, 0.975], axis=0)
    varied = np.ptp(table.codes[[item.row for item in tried]], axis=0) > 0
    found = {
        column.name: Importance(
            percent=float(whole[d]), low=float(min(low[d], whole[d])), high=float(max(high[d], whole[d]))
        )
        for d, column in enumerate(table.columns)
        if varied[d]
    }
    return dict(sorted(found.items(), key=lambda item: -item[1].percent))


def minimal_config(records: Sequence[TrialRecord], space: ResolvedSpace, best: Config) -> Config | None:
    """Return `best` with every parameter at its default whose default is predicted to be as fast; None if unchanged.

    Parameters go back one after another, those that matter least first; one is kept when the posterior mean would rise
    by more than 1% in all. Only a proposal: it must be measured against `best` before anything is claimed. What
    can change outputs is never touched.
    """
    point = space.to_point(best)
    table, tried = _tried(records, space)
    if point is None or len(tried) < LEAST_TRIALS:
        return None
    backend = space.backends[best.backend]
    process = _fitted(table, tried, steps=30)
    limit = _predicted(process, table, point) + SAME
    effects = dict(zip((column.name for column in table.columns), process.main_effects(), strict=True))
    current = dict(point)
    for parameter in sorted(backend.parameters, key=lambda item: float(effects.get(item.name, 0.0))):
        name, default = parameter.name, parameter.default
        if default is None or name not in current or parameter.numerics or parameter.step or name == "artifact.chain":
            continue
        if is_same(current[name], default):
            continue
        changed: dict[str, Value] = {**current, name: default}
        if not space.violations(changed) and _predicted(process, table, changed) <= limit:
            current = changed
    return space.to_config(current) if current != point else None


def _tried(records: Sequence[TrialRecord], space: ResolvedSpace) -> tuple[PointTable, list[Tried]]:
    """Return the trials with a value, on a table of their points alone."""
    pairs = [(record, space.to_point(record.config)) for record in records if record.value is not None]
    known = [(record, point) for record, point in pairs if point is not None]
    table = PointTable(space, [])
    tried = [tried_of(record, table.extend([point])[0]) for record, point in known]
    return table, [item for item in tried if item.value is not None]


def _fitted(table: PointTable, tried: Sequence[Tried], *, steps: int) -> Gaussian:
    process = Gaussian(table)
    rows = np.array([item.row for item in tried], dtype=np.int64)
    values = np.array([item.value for item in tried], dtype=float)
    process.fit(rows, values, noise_of(tried), steps=steps)
    return process


def _shares(table: PointTable, tried: Sequence[Tried], *, steps: int) -> np.ndarray:
    """Return percent by column: the variance of its own fitted effect over the trials, of the variance of all."""
    process = _fitted(table, tried, steps=steps)
    codes = table.codes[[item.row for item in tried]]
    own = np.array([np.var(process.column_means(d)[codes[:, d]]) for d in range(codes.shape[1])])
    total = max(float(np.var(np.array([item.value for item in tried], dtype=float))), float(own.sum()), 1e-12)
    found: np.ndarray = 100 * own / total
    return found


def _predicted(process: Gaussian, table: PointTable, point: Mapping[str, Value]) -> float:
    row = table.extend([dict(point)])[0]
    return float(process.predict(np.array([row])).mean[0])
