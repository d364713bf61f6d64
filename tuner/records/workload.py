"""What is asked: the traffic, the objective and its constraints; nothing of how it is reached."""

from typing import Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from tuner.records.base import Record


class DataSource(Record):
    """Where inputs come from.

    Attributes:
        source: ``builtin`` or the file as the user named it.
        sha256: Digest of the file, None for the built-in texts (they change with the version only).
        n: Rows that are usable.
    """

    source: str = "builtin"
    sha256: str | None = None
    n: int | None = None


class Workload(Record):
    """The traffic to tune for.

    Attributes:
        task: A Hugging Face task name or ``forward``.
        lengths: Token lengths of the traffic sample (special tokens included), in arrival order.
        batch_size: Rows of one call.
        new_tokens: Tokens asked of a generator, None for forward models.
        concurrency: Callers at once, each the next call as soon as its last has ended.
        rate_per_s: Calls a second (Poisson), latency from the scheduled arrival; None: closed loop.
        seed: Seed of sampling and orders.
    """

    task: str
    lengths: tuple[int, ...] = (128,)
    batch_size: int = Field(default=1, ge=1)
    new_tokens: int | None = None
    concurrency: int = Field(default=1, ge=1)
    rate_per_s: float | None = Field(default=None, gt=0)
    data: DataSource = DataSource()
    seed: int = 0


class Constraint(Record):
    """A limit on a measurement path; a value exactly on the bound holds.

    Attributes:
        path: A measurement path such as ``latency_s.p99`` or ``fidelity.cosine_min``.
        operator: ``<=`` or ``>=``.
        bound: Seconds, bytes or a plain figure.
    """

    path: str
    operator: Literal["<=", ">="]
    bound: float


class Metric(Record):
    """The user's accuracy on the rows of the data.

    Attributes:
        name: ``accuracy``, ``f1``, ``spearman``, ``recall@K`` or ``module:function``.
        max_loss: Largest loss against the float32 reference, in the metric's own units.
        sha256: Of the module's file, None for a metric of ours.
    """

    name: str
    max_loss: float = Field(ge=0)
    sha256: str | None = None

    @property
    def is_code(self) -> bool:
        """Return whether it names code of the user's."""
        return ":" in self.name


class Objective(Record):
    """What is minimised or maximised.

    Attributes:
        target: A measurement path, for example ``latency_s.p50``.
        metric: The user's accuracy; absent from JSON where there is none.
    """

    target: str = "latency_s.p50"
    direction: Literal["minimize", "maximize"] = "minimize"
    constraints: tuple[Constraint, ...] = ()
    metric: Metric | None = None

    @model_serializer(mode="wrap")
    def _without_absent_metric(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Leave an absent metric out: what was asked without one keeps its digest."""
        content: dict[str, object] = handler(self)
        if self.metric is None:
            del content["metric"]
        return content
