"""What was measured: figures in seconds and bytes, null where unknown; it computes nothing."""

from typing import Literal

from pydantic import Field

from tuner.errors import FailureKind
from tuner.records.base import Record, Scalar
from tuner.records.config import Config


class Latency(Record):
    """Latency of one call in seconds; a percentile is null under the least number of samples that supports it.

    Attributes:
        ci95: Order-statistic intervals by percentile name, ``{"p50": [low, high]}``.
    """

    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    mean: float | None = None
    min: float | None = None
    n: int = 0
    ci95: dict[str, tuple[float, float]] = Field(default_factory=dict)


class Fidelity(Record):
    """Closeness of outputs to the forced float32 reference; null where a figure has no meaning for the task.

    Attributes:
        n: Samples compared.
        method: ``embedding``, ``classes``, ``graph`` or ``generation``.
        metric_loss: Metric of the reference less the candidate's; `metric_loss_high` is its upper 95% bound, which
            the limit must hold (non-inferiority).
        details: Reported, never gated: per-token figures, intervals.
    """

    cosine_min: float | None = None
    cosine_mean: float | None = None
    rel_error_max: float | None = None
    abs_error_max: float | None = None
    top1_agreement: float | None = None
    kl_mean: float | None = None
    perplexity_ratio: float | None = None
    metric: float | None = None
    metric_reference: float | None = None
    metric_loss: float | None = None
    metric_loss_high: float | None = None
    n: int = 0
    method: str
    details: dict[str, float] = Field(default_factory=dict)


class Effective(Record):
    """Settings in force, read back from the runtime and the operating system, never echoed.

    Attributes:
        threads: Threads of the engine's compute pool.
        cpus: CPU ids of the mask of the worker's main thread.
        precision: Precision the engine says it computes in.
        libraries: Mapped thread-pool, allocator and engine libraries, name to version or path.
        unverified: Settings that cannot be read back.
        settings: Read-back values by session setting.
        environment: Variables that a config may set, as the process was started with them.
        memory_policy: As the kernel says it, e.g. ``bind:0,1``; None where it cannot be asked.
    """

    threads: int | None = None
    cpus: tuple[int, ...] = ()
    precision: str | None = None
    libraries: dict[str, str] = Field(default_factory=dict)
    unverified: tuple[str, ...] = ()
    settings: dict[str, Scalar] = Field(default_factory=dict)
    environment: dict[str, str] = Field(default_factory=dict)
    memory_policy: str | None = None


class Notice(Record):
    """Something a person should know: a stable code, what was seen, what to do."""

    code: str
    detail: str
    remedy: str | None = None


class Measurement(Record):
    """Everything known of one configuration on this host."""

    latency_s: Latency = Latency()
    throughput_items_per_s: float | None = None
    load_s: float | None = None
    first_call_s: float | None = None
    peak_rss_bytes: int | None = None
    cpu_s_per_item: float | None = None
    fidelity: Fidelity | None = None
    effective: Effective | None = None
    counters: dict[str, float] | None = None
    notices: tuple[Notice, ...] = ()


class Telemetry(Record):
    """What the operating system saw during one block; null where it cannot be seen.

    Attributes:
        wall_s: Length of the block.
        steal_ratio: Stolen time over wall time of all pinned CPUs.
        foreign_ratio: Time other processes ran on the pinned CPUs over wall time of them all.
        throttled_s: Time the quota stopped us; own_throttling says that our own use filled the quota.
        sentinel_ratio: Sentinel loop now over its calibrated median.
        suspended_s: Time the machine slept during the block.
    """

    wall_s: float
    steal_ratio: float | None = None
    foreign_ratio: float | None = None
    throttled_s: float | None = None
    own_throttling: bool | None = None
    major_faults: int | None = None
    involuntary_switches: int | None = None
    pressure_some_s: float | None = None
    sentinel_ratio: float | None = None
    suspended_s: float | None = None


class Block(Record):
    """A timed group of calls of one arm.

    Attributes:
        arm: ``a`` (candidate) or ``b`` (anchor or baseline).
        latencies_s: Seconds of every call, in order; nothing is dropped.
        order: Place in time among the blocks of its comparison, redone ones included.
        cpu_s: CPU time of the process in the block.
        dirty: Why the gate refused it, empty when clean.
        pair: Number of its block pair; a redone pair keeps its number.
        is_used: False for a block whose pair was redone, or whose anchor died: kept, never part of a result.
        peak_rss_bytes: Peak of the process so far, since loading.
        arm_id: The process.
    """

    arm: Literal["a", "b"]
    order: int
    latencies_s: tuple[float, ...]
    cpu_s: float
    wall_s: float
    telemetry: Telemetry | None = None
    dirty: tuple[str, ...] = ()
    pair: int = 0
    is_used: bool = True
    peak_rss_bytes: int | None = None
    arm_id: str = ""


class Failure(Record):
    """Why a trial has no result."""

    stage: str
    kind: FailureKind
    message: str


class FailureCount(Record):
    """Failures of one kind, with one example."""

    kind: str
    count: int
    example: str


class Measured(Record):
    """A configuration and what it measured."""

    config: Config
    measurement: Measurement
