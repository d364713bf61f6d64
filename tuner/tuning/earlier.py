"""An older result to start from: what was good there and how its trials ranked; it reads files and measures nothing."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuner.errors import UsageError
from tuner.loading.adapting import adapt
from tuner.records.config import Config
from tuner.records.hardware import Host
from tuner.records.profile import Profile
from tuner.study.store import StudyStore, TrialRecord
from tuner.tuning.planning import Plan

__all__ = ["Earlier", "good_configs", "nearest_earlier", "start_from"]

OTHERS = 3


@dataclass(frozen=True)
class Earlier:
    """What an older result makes likely.

    Attributes:
        configs: Good ones, best first, fitted to this host.
        records: The trials behind them. They order configurations; their figures are never taken over.
        is_alike: Model and host are the same, so what was bad there need not be screened again.
    """

    configs: Sequence[Config] = ()
    records: Sequence[TrialRecord] = ()
    is_alike: bool = False


def start_from(profile: Profile, host: Host, *, model_sha256: str | None = None) -> Earlier:
    """Return what a profile and its study, if that is still there, make likely on `host`.

    Args:
        profile: The older result.
        host: Where it is tuned now.
        model_sha256: Of the model that is tuned now, None for the profile's own.
    """
    configs = [profile.best.config]
    if profile.challenger is not None:
        configs.insert(0 if profile.best.config == profile.baseline.config else 1, profile.challenger.config)
    records: list[TrialRecord] = []
    if profile.study is not None and Path(profile.study).is_dir():
        records = [one for one in StudyStore(Path(profile.study)).records() if one.purpose in ("screen", "search")]
        configs += good_configs(records)
    return Earlier(
        [adapt(config, host).config for config in configs],
        records,
        is_alike=profile.fingerprint.hardware == host.fingerprint and model_sha256 in (None, profile.model.sha256),
    )


def good_configs(records: Iterable[TrialRecord], n: int = OTHERS) -> list[Config]:
    """Return the best configs of an older study, one an artifact; their values only order them."""
    measured = [
        record
        for record in records
        if record.state == "measured" and record.value is not None and record.purpose in ("screen", "search")
        if not any(value > 0 for value in record.violations.values())
    ]
    found: dict[tuple[str, str], Config] = {}
    for record in sorted(measured, key=lambda record: record.value or 0.0):
        found.setdefault((record.config.backend, record.config.artifact_digest()), record.config)
    return list(found.values())[:n]


def nearest_earlier(plan: Plan, root: Path) -> tuple[Path, Profile] | None:
    """Return the profile that was made under circumstances most like a plan's; None if no known one is of its task.

    Known are the profiles that were written with this cache and are still where they were. What counts, in this order:
    the same model, the same host, the same target, the workload's batch and lengths, the newest.

    Args:
        plan: What is to be tuned.
        root: The cache directory.
    """
    found = [
        (distance(plan, profile), path, profile)
        for path, profile in known_profiles(root)
        if profile.model.task == plan.model.task and profile.best.config.backend in plan.backends
    ]
    if not found:
        return None
    found.sort(key=lambda one: one[2].created_at, reverse=True)
    _, path, profile = min(found, key=lambda one: one[0])
    return path, profile


def distance(plan: Plan, profile: Profile) -> tuple[bool, bool, bool, float]:
    """Return how far a profile is from a plan; less is nearer."""
    ours, theirs = plan.workload, profile.workload
    apart = abs(math.log(ours.batch_size / theirs.batch_size)) + abs(math.log(max(ours.lengths) / max(theirs.lengths)))
    return (
        profile.model.sha256 != plan.model.sha256,
        profile.fingerprint.hardware != plan.host.fingerprint,
        profile.objective.target != plan.objective.target,
        apart,
    )


def known_profiles(root: Path) -> Iterator[tuple[Path, Profile]]:
    """Yield the complete profiles that were registered in a cache and can still be read."""
    for file in sorted((root / "profiles").glob("*.json")):
        try:
            path = Path(json.loads(file.read_bytes())["path"])
            profile = Profile.from_json(path.read_bytes(), source=str(path))
        except (OSError, ValueError, KeyError, TypeError, UsageError):
            continue
        if not profile.incomplete:
            yield path, profile
