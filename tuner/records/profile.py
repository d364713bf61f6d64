"""The profile: the one record that crosses from tuning to serving; writing and checking it is done elsewhere.

Keys may be added to it: those of a newer version are kept through reading and writing, and named by `newer_keys`.
"""

import json
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, cast

from pydantic import Field

from tuner.records.base import Record, Scalar
from tuner.records.config import Config
from tuner.records.measurement import FailureCount, Measured, Measurement, Notice
from tuner.records.workload import Objective, Workload

PROFILE_SCHEMA: Literal["tuner.profile/1"] = "tuner.profile/1"
Verdict = Literal["WIN", "NO_WORTHWHILE_WIN", "INCONCLUSIVE", "FEASIBLE_ONLY"]


class Fingerprint(Record):
    """Digests over the fields whose change refuses a profile or has it checked again."""

    hardware: str
    software: str
    model: str
    workload: str


class ProfileModel(Record):
    """The model a profile was made for."""

    source: str
    sha256: str
    task: str


class Effort(Record):
    """What the result cost; seconds and counts."""

    budget_s: float
    wall_s: float
    build_s: float
    measure_s: float
    overhead_s: float
    trials: int
    pruned: int
    rejected: int
    seed: int
    sampler: str
    space_sha256: str
    space_size: int
    stopped_by: str


class ArtifactFile(Record):
    """One file of the winning artifact: path relative to the profile or the cache, digest, size."""

    path: str
    sha256: str
    bytes: int


class Best(Record):
    """The configuration to serve."""

    config: Config
    measurement: Measurement
    artifacts: tuple[ArtifactFile, ...] = ()


class Fallback(Record):
    """What to serve where the profile does not hold: float32, threads = cpu_budget, the plainest engine."""

    config: Config


class Speedup(Record):
    """Baseline over best (inverted for throughput): above 1 is better; playoff data only.

    Attributes:
        mde: Smallest gain (ratio - 1) these pairs could have resolved with 80% power.
    """

    ratio: float
    ci95: tuple[float, float]
    pairs: int
    mde: float | None = None


class Importance(Record):
    """Percent of the variance of ln time over the trials that a knob explains by itself, with its 95% interval."""

    percent: float
    low: float
    high: float


class Limit(Record):
    """The physical limit of this host for this model."""

    bound_s: float
    fraction: float
    bound_by: str


class Profile(Record):
    """The result of a tuning run.

    Attributes:
        request: The options of the run, from which `autotune retune` makes them again; no passwords.
        study: Absolute path of the study's directory where the run was made.
    """

    unknown_keys: ClassVar[Literal["forbid", "allow"]] = "allow"

    schema_: Literal["tuner.profile/1"] = Field(default=PROFILE_SCHEMA, alias="schema")
    created_at: str
    tuner_version: str
    incomplete: bool = False
    command: tuple[str, ...]
    request: dict[str, object] | None = None
    fingerprint: Fingerprint
    hardware: dict[str, object]
    software: dict[str, str]
    model: ProfileModel
    workload: Workload
    objective: Objective
    effort: Effort
    baseline: Measured
    best: Best
    challenger: Measured | None = None
    fallback: Fallback
    verdict: Verdict
    speedup: Speedup | None = None
    limit: Limit | None = None
    pareto: tuple[dict[str, Scalar], ...] = ()
    importance: dict[str, Importance] = Field(default_factory=dict)
    failures: tuple[FailureCount, ...] = ()
    notices: tuple[Notice, ...] = ()
    study: str | None = None

    def to_json(self, *, indent: int | None = None) -> str:
        """Return strict JSON, keys of a newer version where they stood, after those of this one."""
        document = self.model_dump(mode="json")
        for parts, value in _newer(self, ()):
            place: object = document
            for part in parts[:-1]:
                place = cast("Mapping[str | int, object]", place)[part]
            cast("dict[str | int, object]", place)[parts[-1]] = value
        return json.dumps(document, indent=indent, allow_nan=False, ensure_ascii=False)

    def newer_keys(self) -> tuple[str, ...]:
        """Return the keys that this version does not know, with dots; what they say is not followed."""
        return tuple(".".join(map(str, parts)) for parts, _ in _newer(self, ()))


def _newer(value: object, parts: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Yield place and value of every key that no field has, in records wherever they stand in `value`."""
    if isinstance(value, Record):
        for name, inner in (value.model_extra or {}).items():
            yield (*parts, name), inner
        for name, field in type(value).model_fields.items():
            yield from _newer(getattr(value, name), (*parts, field.alias or name))
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _newer(inner, (*parts, name))
    elif isinstance(value, tuple):
        for index, inner in enumerate(value):
            yield from _newer(inner, (*parts, index))
