"""Puts a Profile together from what was measured, and writes it; it measures and decides nothing."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import tuner
from tuner.artifacts.store import MANIFEST, sha256_of, write_atomically
from tuner.errors import HostError, UsageError
from tuner.records.base import Scalar, digest_of
from tuner.records.config import Config
from tuner.records.measurement import FailureCount, Measured, Notice
from tuner.records.profile import (
    ArtifactFile,
    Best,
    Effort,
    Fallback,
    Fingerprint,
    Profile,
    ProfileModel,
    Speedup,
    Verdict,
)
from tuner.study.building import Workshop
from tuner.study.importance import importances
from tuner.study.objective import figure, is_feasible
from tuner.study.store import TrialRecord
from tuner.tuning.planning import Plan
from tuner.tuning.remembering import remembered, shown_command

SEARCHED = ("screen", "search")
PARETO_PATHS = ("latency_s.p50", "peak_rss_bytes", "load_s")


def build_profile(
    plan: Plan,
    *,
    workshop: Workshop,
    records: Sequence[TrialRecord],
    effort: Effort,
    baseline: Measured,
    best: Measured,
    challenger: Measured | None,
    verdict: Verdict,
    speedup: Speedup | None,
    notices: Iterable[Notice],
    incomplete: bool,
    study: str | None = None,
) -> Profile:
    """Return the profile of a run."""
    return Profile(
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        tuner_version=tuner.__version__,
        incomplete=incomplete,
        command=shown_command(plan.request.command) or ("tuner.tune",),
        request=remembered(plan.request),
        fingerprint=Fingerprint(
            hardware=plan.host.fingerprint,
            software=digest_of(major_minor(plan.versions)),
            model=plan.model.sha256,
            workload=plan.workload.digest(),
        ),
        hardware=plan.host.model_dump(mode="json"),
        software=plan.versions,
        model=ProfileModel(source=plan.model.source, sha256=plan.model.sha256, task=plan.model.task),
        workload=plan.workload,
        objective=plan.objective,
        effort=effort,
        baseline=baseline,
        best=Best(
            config=best.config,
            measurement=best.measurement,
            artifacts=artifact_files(workshop, best.config),
        ),
        challenger=challenger,
        fallback=Fallback(config=plan.fallback),
        verdict=verdict,
        speedup=speedup,
        limit=None,
        pareto=pareto(records, plan),
        importance=importances([record for record in records if record.purpose in SEARCHED], plan.space),
        failures=failures(records),
        notices=unique(notices),
        study=study,
    )


def major_minor(versions: dict[str, str]) -> dict[str, str]:
    """Return versions cut to major.minor: another patch release is not another engine."""
    return {name: ".".join(version.split("+")[0].split(".")[:2]) for name, version in sorted(versions.items())}


def artifact_files(workshop: Workshop, config: Config) -> tuple[ArtifactFile, ...]:
    """Return the files of a config's artifact, paths relative to the cache directory; the manifest is one of them."""
    manifest = workshop.manifest(config)
    if manifest is None:
        return ()
    directory = workshop.artifact_of(config)
    base = directory.relative_to(workshop.store.root)
    own = directory / MANIFEST
    files = [ArtifactFile(path=str(base / MANIFEST), sha256=sha256_of(own), bytes=own.stat().st_size)]
    files += [file.model_copy(update={"path": str(base / file.path)}) for file in manifest.files]
    return tuple(files)


def failures(records: Iterable[TrialRecord]) -> tuple[FailureCount, ...]:
    """Count failures by kind, with one example each; configs that broke a constraint are counted as infeasible."""
    examples: dict[str, list[str]] = defaultdict(list)
    for record in records:
        if record.failure is not None:
            examples[record.failure.kind].append(
                f"{record.config.backend} {record.config.chain()}: {record.failure.message}"
            )
        else:
            broken = [key for key, value in record.violations.items() if value > 0]
            if broken and record.state == "measured":
                examples["infeasible"].append(f"{record.config.backend} {record.config.chain()}: misses {broken[0]}")
    return tuple(
        FailureCount(kind=kind, count=len(texts), example=texts[0]) for kind, texts in sorted(examples.items())
    )


def count_states(records: Iterable[TrialRecord]) -> Counter[str]:
    """Count ``pruned`` and ``rejected`` (failed and infeasible) trials."""
    found: Counter[str] = Counter()
    for record in records:
        if record.state == "pruned":
            found["pruned"] += 1
        elif record.state == "failed" or any(value > 0 for value in record.violations.values()):
            found["rejected"] += 1
    return found


def pareto(records: Iterable[TrialRecord], plan: Plan) -> tuple[dict[str, Scalar], ...]:
    """Return the feasible trials that no other one beats in latency, memory and load time at once."""
    rows: list[dict[str, Scalar]] = []
    for record in records:
        if (
            record.state == "measured"
            and record.measurement is not None
            and is_feasible(record.measurement, plan.objective)
        ):
            row: dict[str, Scalar] = {path: figure(record.measurement, path) for path in PARETO_PATHS}
            row |= {"trial": record.number, "config": record.config.digest()[:12], "backend": record.config.backend}
            rows.append(row)
    front = [row for row in rows if not any(dominates(other, row) for other in rows)]
    return tuple(sorted(front, key=lambda row: float(row[PARETO_PATHS[0]] or 0.0)))


def dominates(one: dict[str, Scalar], other: dict[str, Scalar]) -> bool:
    """Say whether `one` is nowhere worse than `other` and somewhere better; an unknown figure is worst."""
    pairs = [(worth(one[path]), worth(other[path])) for path in PARETO_PATHS]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def worth(value: Scalar) -> float:
    """Return a figure as a cost, infinite where it is unknown."""
    return float(value) if isinstance(value, (int, float)) else float("inf")


def unique(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Return each notice once, in order."""
    return tuple(dict.fromkeys(notices))


def write_profile(profile: Profile, path: Path) -> Path:
    """Write the profile atomically; an incomplete one never replaces a complete one.

    Returns:
        Where it was written: beside the complete one as ``<name>.incomplete.json`` if there is one.

    Raises:
        HostError: The disk is full or the place cannot be written; an existing file is as it was.
    """
    place = path
    if profile.incomplete and is_complete_profile(path):
        place = path.with_name(f"{path.stem}.incomplete.json")
    try:
        write_atomically(place, profile.to_json(indent=1).encode() + b"\n")
    except OSError as error:
        raise HostError(
            f"{place} cannot be written ({error.strerror}); the study keeps the profile, run again"
        ) from error
    return place


def is_complete_profile(path: Path) -> bool:
    """Say whether a complete profile stands at `path`."""
    try:
        return not Profile.from_json(path.read_bytes()).incomplete
    except (OSError, UsageError):
        return False
