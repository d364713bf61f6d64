"""Decides from telemetry, before any latency is seen, whether a block counts; it reads no counter."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tuner.records.measurement import Telemetry

STEAL = 0.01
FOREIGN = 0.03
SENTINEL = 1.10
CLOCK_SLACK = 0.05
MAX_REDOS = 2
BACK_OFF_S = (5.0, 15.0)
BACK_OFF_SHARE = 0.05
GIVE_UP_SHARE = 0.30
_LEAST_REDONE = 3


def dirty_reasons(
    telemetry: Telemetry, *, is_first: bool = False, worker_wall_s: float | None = None
) -> tuple[str, ...]:
    """Return why a block does not count, empty when it does.

    Pressure alone never refuses a block: it also counts threads of the configuration itself.

    Args:
        telemetry: What the system saw; unknown figures refuse nothing.
        is_first: First block after loading, in which mapped artifacts may be touched for the first time.
        worker_wall_s: The worker's own length of the timed calls; more than the parent saw means a clock jumped.
    """
    seen = telemetry
    reasons = []
    if seen.steal_ratio is not None and seen.steal_ratio > STEAL:
        reasons.append("steal")
    if seen.foreign_ratio is not None and seen.foreign_ratio > FOREIGN:
        reasons.append("foreign")
    if seen.throttled_s and not seen.own_throttling:
        reasons.append("throttled")
    if seen.major_faults and not is_first:
        reasons.append("major_faults")
    if seen.sentinel_ratio is not None and seen.sentinel_ratio > SENTINEL:
        reasons.append("sentinel")
    if seen.suspended_s is not None and seen.suspended_s > CLOCK_SLACK:
        reasons.append("suspended")
    if worker_wall_s is not None and worker_wall_s > seen.wall_s * (1 + CLOCK_SLACK) + CLOCK_SLACK:
        reasons.append("clock")
    return tuple(reasons)


def unusable_latencies(latencies_s: Iterable[float]) -> tuple[str, ...]:
    """Return ``clock`` if a latency is negative or most are zero: the clock stepped back or is too coarse."""
    values = sorted(latencies_s)
    return ("clock",) if not values or values[0] < 0 or values[len(values) // 2] <= 0 else ()


@dataclass(frozen=True)
class GateState:
    """How often pairs were redone so far, and what that cost; a study has one.

    Attributes:
        budget_s: Of the whole run; back-off never takes more than 5% of it.
        pairs: Pairs asked for.
        redone: Redone at least once.
        waited_s: Back-off so far.
        is_open: Gating has stopped: more than 30% of the pairs were redone, results are of low confidence.
    """

    budget_s: float
    pairs: int = 0
    redone: int = 0
    waited_s: float = 0.0
    is_open: bool = False

    def after_pair(self, *, was_redone: bool) -> "GateState":
        """Count one finished pair; open the gate once three pairs and more than 30% of all were redone."""
        pairs, redone = self.pairs + 1, self.redone + was_redone
        is_open = self.is_open or (redone >= _LEAST_REDONE and redone > GIVE_UP_SHARE * pairs)
        return replace(self, pairs=pairs, redone=redone, is_open=is_open)

    def may_redo(self, redos: int) -> bool:
        """Say whether a dirty pair that was redone `redos` times is run again."""
        return not self.is_open and redos < MAX_REDOS

    def back_off_s(self, redos: int) -> float:
        """Return how long to wait before the redo: 5 s, then 15 s, and never above what is left of the 5%."""
        left = BACK_OFF_SHARE * self.budget_s - self.waited_s
        return max(0.0, min(BACK_OFF_S[min(redos, len(BACK_OFF_S) - 1)], left))

    def after_waiting(self, seconds: float) -> "GateState":
        """Count a back-off."""
        return replace(self, waited_s=self.waited_s + seconds)
