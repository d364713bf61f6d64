"""`load`: checks a profile, opens what it says, and tells what is in force; it never tunes and never builds."""

import os
from pathlib import Path
from typing import cast

from tuner.artifacts.places import cache_directory
from tuner.backends.base import Backend, Context, Session
from tuner.errors import ProfileMismatch, Unsupported, UsageError
from tuner.hardware.detection import detect
from tuner.loading.adapting import adapt
from tuner.loading.checking import (
    CheckResult,
    environment_differences,
    model_difference,
    newer_differences,
    refuse,
    served,
)
from tuner.loading.files import find_artifacts, read_profile
from tuner.loading.launching import came_too_late
from tuner.loading.model import Model
from tuner.plugins import plugin
from tuner.records.base import Scalar
from tuner.records.config import Config
from tuner.records.measurement import Effective
from tuner.records.model import ModelFacts
from tuner.records.profile import Profile

_PRELOADED = ("process.allocator", "process.openmp_runtime", "process.memory_policy")


def load(
    profile: str | os.PathLike[str],
    model: str | os.PathLike[str] | None = None,
    *,
    strict: bool = True,
    cache_dir: str | None = None,
    trust_profile: bool = False,
    trust_code: bool = False,
) -> Model:
    """Open a model as a profile says.

    Args:
        profile: The JSON profile.
        model: Where the model is now, if it moved since.
        strict: Refuse whatever does not hold; False serves the best with what can still take effect, with no more
            threads than the CPUs granted (the rest is in `Model.not_applied`), and the fallback only where the
            fingerprint refuses.
        cache_dir: Where artifacts are; default: $XDG_CACHE_HOME/autotune. The profile's own directory is looked in
            first.
        trust_profile: Open native code that comes with the profile, not only from our own cache directory.
        trust_code: Run the code of a ``py:`` model that the profile names.

    Raises:
        UsageError: Not a profile, or it holds something that no profile may.
        ProfileMismatch: strict, and the fingerprint refuses, or a required setting came too late: start the program
            through `autotune exec`.
    """
    path = Path(profile)
    loaded = read_profile(path)
    cache = cache_directory(cache_dir)
    host = detect()
    place = os.fspath(model) if model is not None else None
    facts, difference = model_difference(loaded, path, place, cache, trust_code=trust_code)
    if facts is None or difference is not None:
        assert difference is not None
        raise ProfileMismatch(f"{path.name}: {difference.detail}")
    differences = environment_differences(loaded, host)
    serves_best = served(differences) in ("best", "adapted")
    if strict:
        refuse(CheckResult(holds=serves_best, serves="best", differences=differences), path)
    not_applied: dict[str, str] = {}
    config = loaded.best.config
    artifact: Path | None = None
    if serves_best:
        artifact, not_applied = _artifact(loaded, path, cache, strict=strict, trust_native=trust_profile)
        not_applied |= {one.field: one.detail for one in newer_differences(loaded) if one.consequence == "warn"}
        serves_best = "artifact" not in not_applied
    if not serves_best:
        reasons = [one for one in differences if one.consequence in ("refuse", "fallback")]
        not_applied |= {one.field: one.detail for one in reasons}
        config = loaded.fallback.config
    adapted = adapt(config, host)
    config = adapted.config
    not_applied |= {name: reason for name, reason in adapted.given_up.items() if name not in _PRELOADED}
    late = came_too_late(config, host, os.environ) | {
        name: reason for name, reason in adapted.given_up.items() if name in _PRELOADED
    }
    if late and strict:
        name, reason = next(iter(late.items()))
        raise ProfileMismatch(f"{path.name}: {name}: {reason}: start it with `autotune exec {path} -- CMD`")
    not_applied |= late
    session, effective = open_session(config, artifact or Path(facts.path), facts, loaded, cache)
    return Model(profile=loaded, facts=facts, session=session, effective=effective, not_applied=not_applied)


def _artifact(
    profile: Profile, path: Path, cache: Path, *, strict: bool, trust_native: bool
) -> tuple[Path | None, dict[str, str]]:
    """Return the artifact's directory with every digest checked, or why it cannot be served."""
    try:
        bases = (path.absolute().parent, cache)
        return find_artifacts(profile, bases, own=cache, trust_native=trust_native), {}
    except ProfileMismatch as error:
        if strict:
            raise
        return None, {"artifact": str(error)}


def open_session(
    config: Config, artifact: Path, facts: ModelFacts, profile: Profile, cache: Path
) -> tuple[Session, Effective]:
    """Open a config in this process and read back what is in force.

    Raises:
        UsageError: The backend is not installed or refuses the model or the settings.
    """
    if config.artifact and artifact == Path(facts.path):
        raise UsageError("the fallback of this profile needs an artifact that is not here: tune again")
    backend = cast("Backend", plugin("tuner.backends", config.backend))
    settings = backend.SessionSettings.from_json_object(config.session, source=f"backend {config.backend}")
    context = Context(model=facts, workload=profile.workload, cache_dir=str(cache / "engines"))
    try:
        session = backend.open(artifact, settings, context)
    except (Unsupported, ImportError) as error:
        raise UsageError(f"backend {config.backend} cannot open {facts.source}: {error}") from error
    answer = dict(session.effective())
    threads, precision = answer.get("threads"), answer.get("precision")
    values: dict[str, Scalar] = {
        name: value for name, value in answer.items() if isinstance(value, (bool, int, float, str))
    }
    return session, Effective(
        threads=threads if isinstance(threads, int) else None,
        cpus=tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else (),
        precision=precision if isinstance(precision, str) else None,
        unverified=tuple(str(name) for name in cast("list[str]", answer.get("unverified", ()))),
        settings=values,
    )
