"""Verdicts from the process pairs of a playoff: speed, constraints, the p99 guard; it runs nothing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tuner.compare.arms import Run
from tuner.compare.pairs import ProcessPair
from tuner.compare.targets import Target, quantile_cost, run_cost, target_of
from tuner.errors import UsageError
from tuner.measure.quantiles import CLAIM_N, least_n
from tuner.measure.stats import (
    MARGIN,
    Decision,
    Held,
    constraint_held,
    decide,
    mean_interval,
    pairs_for_gain,
    resolvable_gain,
    sign_e_value,
    tail_guard,
)
from tuner.records.measurement import Fidelity
from tuner.records.profile import Speedup, Verdict
from tuner.records.workload import Constraint, Objective

Guard = Literal["ok", "harm", "not_resolved"]
SIGN_EVIDENCE = 40.0
"""An e-value of 1 / .025: the signs alone confirm at the level of the playoff."""
_LEAST_SIGNS = 8


@dataclass(frozen=True)
class Judgement:
    """What the pairs so far say.

    Attributes:
        decision: On speed alone, by the look's t interval.
        verdict: With constraints and the p99 guard.
        held: Every constraint's state for the candidate, by ``path operator bound``.
        broken_by_baseline: Constraints that the baseline's figures break.
        guard: The p99 guard; None where the target itself is a tail, or not a matter of latency.
        e_value: Of the signs of the pairs against the margin.
        is_sign_confirmed: None under 8 pairs.
    """

    decision: Decision
    verdict: Verdict
    held: dict[str, Held]
    broken_by_baseline: tuple[str, ...]
    guard: Guard | None
    e_value: float
    is_sign_confirmed: bool | None

    @property
    def is_final(self) -> bool:
        """Return whether more pairs cannot change the verdict, or need not."""
        if self.verdict == "WIN" or self.guard == "harm" or "broken" in self.held.values():
            return True
        return self.decision == "NO_WORTHWHILE_WIN" and not (
            self.broken_by_baseline and "unresolved" in self.held.values()
        )


def gains(pairs: Sequence[ProcessPair]) -> list[float]:
    """Return d_k = ln(cost of the baseline / cost of the candidate) of every process pair; positive is better."""
    return [-pair.log_ratio for pair in pairs]


def speedup_of(d: Sequence[float]) -> Speedup | None:
    """Return exp(mean ± t_{.989, K-1}·s/√K) of the pairs' gains; None for fewer than two pairs."""
    if len(d) < 2:  # noqa: PLR2004 - no spread from one value
        return None
    interval = mean_interval(d)
    return Speedup(
        ratio=math.exp(interval.mean),
        ci95=(math.exp(interval.low), math.exp(interval.high)),
        pairs=len(d),
        mde=resolvable_gain(interval.sd, len(d)),
    )


def judge(
    pairs: Sequence[ProcessPair],
    objective: Objective,
    *,
    items_per_batch: int = 1,
    fidelity: Fidelity | None = None,
    baseline_fidelity: Fidelity | None = None,
    margin: float = MARGIN,
) -> Judgement:
    """Judge the pairs at a look.

    WIN needs a shown gain, every constraint shown to hold, and no shown harm to p99. FEASIBLE_ONLY: the baseline breaks
    a constraint, the candidate keeps all, and no gain is shown.

    Args:
        pairs: Process pairs so far, fresh ones only.
        objective: Target and constraints.
        items_per_batch: Rows of one call.
        fidelity: The candidate's, for constraints on it.
        baseline_fidelity: The baseline's; None holds (it is the reference, or close to it).
        margin: Gain worth a change.
    """
    d = gains(pairs)
    target = target_of(objective.target)
    decision = decide(d, margin=margin)
    candidates, baselines = [pair.a for pair in pairs], [pair.b for pair in pairs]
    held = {name_of(c): held_by(c, candidates, items_per_batch, fidelity) for c in objective.constraints}
    broken = tuple(
        name_of(c)
        for c in objective.constraints
        if is_broken_by_figures(c, baselines, items_per_batch, baseline_fidelity)
    )
    guard = p99_guard(candidates, baselines) if target.is_latency and not target.is_tail else None
    e_value = sign_e_value(d, margin=margin)
    return Judgement(
        decision=decision,
        verdict=_verdict(decision, held, broken, guard),
        held=held,
        broken_by_baseline=broken,
        guard=guard,
        e_value=e_value,
        is_sign_confirmed=e_value >= SIGN_EVIDENCE if len(d) >= _LEAST_SIGNS else None,
    )


def _verdict(decision: Decision, held: dict[str, Held], broken: tuple[str, ...], guard: Guard | None) -> Verdict:
    is_feasible = all(state == "holds" for state in held.values())
    if "broken" in held.values():
        return "NO_WORTHWHILE_WIN"
    if is_feasible and broken and (decision != "WIN" or guard == "harm"):
        return "FEASIBLE_ONLY"
    if guard == "harm":
        return "NO_WORTHWHILE_WIN"
    if decision == "WIN" and not is_feasible:
        return "INCONCLUSIVE"
    return decision


def p99_guard(candidates: Sequence[Run], baselines: Sequence[Run]) -> Guard:
    """Compare p99 process by process; vetoes only a shown growth above 10%."""
    mine, theirs = [run.latencies_s() for run in candidates], [run.latencies_s() for run in baselines]
    n_calls = min(sum(map(len, mine)), sum(map(len, theirs)))
    if n_calls < least_n(0.99):
        return "not_resolved"
    harm = [math.log(quantile_cost(a, 0.99) / quantile_cost(b, 0.99)) for a, b in zip(mine, theirs, strict=True)]
    return tail_guard(harm, n_calls, least=least_n(0.99), claim=CLAIM_N)


def name_of(constraint: Constraint) -> str:
    """Return a constraint as it is written: ``latency_s.p99 <= 0.03``."""
    return f"{constraint.path} {constraint.operator} {constraint.bound:g}"


def held_by(constraint: Constraint, runs: Sequence[Run], items_per_batch: int, fidelity: Fidelity | None) -> Held:
    """Decide a constraint by a one-sided 95% bound on one figure per process; fidelity by its figure.

    A percentile without the calls it needs, or a figure that was not measured, is ``unresolved``.
    """
    if constraint.path.startswith("fidelity."):
        value = _fidelity_value(constraint, fidelity)
        return "unresolved" if value is None else constraint_held([value], constraint.operator, constraint.bound)
    values = _values(constraint, runs, items_per_batch)
    return "unresolved" if values is None else constraint_held(values, constraint.operator, constraint.bound)


def is_broken_by_figures(
    constraint: Constraint, runs: Sequence[Run], items_per_batch: int, fidelity: Fidelity | None
) -> bool:
    """Say whether the mean of the runs' figures breaks a constraint; what is unknown breaks nothing."""
    if constraint.path.startswith("fidelity."):
        value = _fidelity_value(constraint, fidelity)
        values = None if value is None else [value]
    else:
        values = _values(constraint, runs, items_per_batch)
    if not values:
        return False
    mean = math.fsum(values) / len(values)
    return mean > constraint.bound if constraint.operator == "<=" else mean < constraint.bound


def _values(constraint: Constraint, runs: Sequence[Run], items_per_batch: int) -> list[float] | None:
    """Return the constrained figure of every process in its own unit, None where it is not resolved."""
    try:
        target = target_of(constraint.path)
    except UsageError:
        return None
    if target.p is not None and sum(len(run.latencies_s()) for run in runs) < least_n(target.p):
        return None
    return [_figure(target, run_cost(target, run), items_per_batch) for run in runs]


def _figure(target: Target, cost: float, items_per_batch: int) -> float:
    if target.kind == "throughput":
        return items_per_batch / cost
    return cost / items_per_batch if target.kind == "cpu" else cost


def _fidelity_value(constraint: Constraint, fidelity: Fidelity | None) -> float | None:
    value = None if fidelity is None else getattr(fidelity, constraint.path.removeprefix("fidelity."), None)
    return float(value) if isinstance(value, (int, float)) else None


Confirmation = Literal["confirmed", "contradicted", "not_resolved"]


def confirmation(d: Sequence[float], verdict: Verdict) -> Confirmation:
    """Say whether fresh pairs confirm a profile's best: shown gain, shown lack of one, or neither."""
    if verdict in {"WIN", "FEASIBLE_ONLY"}:
        return "confirmed"
    return "contradicted" if verdict == "NO_WORTHWHILE_WIN" and len(d) > 1 else "not_resolved"


def pairs_to_resolve(d: Sequence[float], claimed_ratio: float) -> int | None:
    """Return the process pairs that would resolve the claimed speed-up at the spread seen, None if none would."""
    return pairs_for_gain(mean_interval(d).sd, claimed_ratio - 1) if len(d) > 1 and claimed_ratio > 1 + MARGIN else None
