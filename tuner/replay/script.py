"""What a simulated configuration does and what befalls a simulated host; plain data."""

from dataclasses import dataclass, field

from tuner.errors import FailureKind
from tuner.records.measurement import Effective, Fidelity


@dataclass(frozen=True)
class SimModel:
    """A configuration's true behaviour.

    Attributes:
        call_s: True median of a warm call.
        open_s: Spawn and load.
        first_call_s: First call; None is three calls.
        rss_bytes: Resident and peak memory.
        cpus_used: CPU seconds a second of call.
        warm_kind: Class its warm-up ends in.
        drift_per_s: Relative growth of the call per second since it was opened.
        stall_share: Share of calls that the quota stops for `stall_s`.
        stall_is_own: The configuration itself used the quota up.
        tail_share: Share of calls that take `tail_factor` times as long by their nature.
        fault: How it fails, None if it works.
        fault_stage: ``load``, ``warm``, ``block`` or ``fidelity``.
        fault_after: Blocks that work before (``block`` only).
        fidelity: What a check of its outputs finds.
    """

    call_s: float
    open_s: float = 2.0
    first_call_s: float | None = None
    rss_bytes: int = 200_000_000
    cpus_used: float = 1.0
    warm_kind: str = "flat"
    drift_per_s: float = 0.0
    stall_share: float = 0.0
    stall_s: float = 0.08
    stall_is_own: bool = False
    tail_share: float = 0.0
    tail_factor: float = 2.0
    fault: FailureKind | None = None
    fault_stage: str = "block"
    fault_after: int = 0
    fidelity: Fidelity = field(
        default_factory=lambda: Fidelity(cosine_min=1.0, cosine_mean=1.0, n=64, method="embedding")
    )
    effective: Effective = field(default_factory=Effective)


@dataclass(frozen=True)
class Disturbance:
    """A neighbour between two times: everything is `log_slower` slower, and telemetry shows the rest."""

    from_s: float
    to_s: float
    log_slower: float = 0.0
    steal: float = 0.0
    foreign: float = 0.0
    sentinel_log: float = 0.0


@dataclass(frozen=True)
class Mishap:
    """Something that happens once, at or after a time.

    Attributes:
        kind: ``suspend`` (the machine sleeps), ``jump`` (the worker's clock jumps, either way) or ``kill`` (the oldest
            open process is killed from outside).
        seconds: Length of a suspend or jump.
    """

    at_s: float
    kind: str
    seconds: float = 0.0
