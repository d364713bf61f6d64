"""A configuration: one point of the search space, complete enough to run a worker; no CPU ids, no paths."""

from typing import Literal

from pydantic import Field

from tuner.records.base import Record, Scalar, digest_of


class StepSettings(Record):
    """One build step of an artifact chain and its settings."""

    step: str
    settings: dict[str, Scalar] = Field(default_factory=dict)


class Placement(Record):
    """A policy that turns into CPU ids when a worker starts.

    Attributes:
        scope: Which CPUs may be used: ``all`` allowed ones, one ``package``, one ``node``, one last-level ``cache``.
        policy: Order in which they are taken: ``spread`` (one thread a core first), ``compact`` (siblings together),
            ``none`` (the process keeps the mask it inherited).
        n_cpus: Size of the mask; None keeps all of the scope.
        core_class: ``performance``, ``efficiency`` or None for any.
    """

    scope: Literal["all", "package", "node", "cache"] = "all"
    policy: Literal["none", "spread", "compact"] = "none"
    n_cpus: int | None = Field(default=None, ge=1)
    core_class: str | None = None


class ProcessSettings(Record):
    """What must be in force before the interpreter of a worker imports anything heavy."""

    placement: Placement = Placement()
    memory_policy: Literal["none", "bind", "interleave"] = "none"
    env: dict[str, str] = Field(default_factory=dict)
    allocator: str | None = None
    openmp_runtime: str | None = None


class Config(Record):
    """One way to run the model; an empty `session` leaves every setting at the engine's default."""

    backend: str
    artifact: tuple[StepSettings, ...] = ()
    session: dict[str, Scalar] = Field(default_factory=dict)
    process: ProcessSettings = ProcessSettings()
    instances: int = Field(default=1, ge=1)

    def chain(self) -> str:
        """Return the names of the build steps, joined, or ``source`` when nothing is built."""
        return "+".join(step.step for step in self.artifact) or "source"

    def artifact_digest(self) -> str:
        """Return the digest of the artifact chain with its settings (not of the model)."""
        return digest_of([step.model_dump(mode="json") for step in self.artifact])
