"""`retune`: the request of a profile once more, on what is here now, starting from what was best; no old latencies."""

import json
from pathlib import Path

from tuner.hardware.compatibility import Difference
from tuner.hardware.detection import detect
from tuner.loading.checking import check_profile
from tuner.models.metrics import require_trust_in_metric
from tuner.records.events import Event, OnEvent
from tuner.records.profile import Profile
from tuner.tuning.earlier import start_from
from tuner.tuning.line import TuneResult, run
from tuner.tuning.request import TRUST, TuneRequest

PLACES = ("study", "cache_dir", "space", "baseline")
"""Options that name what is written or opened: taken over only where all of it lies below the profile's directory."""


def retune(
    profile: Profile,
    path: Path,
    *,
    on_event: OnEvent,
    **changes: object,
) -> TuneResult:
    """Tune again as the profile's command says, warm-started; artifacts whose key still holds are not built again.

    Args:
        profile: The older result.
        path: Where it stands; the new one takes its place, unless ``output`` says another.
        on_event: Told first what changed since, one notice a field.
        **changes: Fields of the request to change: ``model``, ``budget_s``, ``trials``, ``output``, ….

    Raises:
        TunerError: As `tune`.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    request = request_of(profile, path).model_copy(update={"output": str(path), **given})
    require_trust_in_metric(request.metric, trust_code=request.trust_code, source=path.name)
    left = [f"--{name.replace('_', '-')}" for name in places_elsewhere(profile, path) if name not in given]
    said = [f"not taken over, not below the profile's directory: {', '.join(left)}; give it again"] if left else []
    for text in (*changed(profile, path, request), *said):
        on_event(Event(kind="notice", text=text))
    return run(request, on_event, earlier=start_from(profile, detect()))


def request_of(profile: Profile, path: Path) -> TuneRequest:
    """Return the request that made a profile; of one without, as much as its fields tell.

    Neither trust is taken over, nor a place elsewhere than below the profile's directory.

    Raises:
        UsageError: An option in the profile's request has a value that this version does not take.
    """
    if profile.request is not None:
        taken = set(TuneRequest.model_fields) - TRUST - set(places_elsewhere(profile, path))
        known = {name: value for name, value in profile.request.items() if name in taken}
        request = TuneRequest.from_json(json.dumps(known), source=f"{path}: request")
        return request.model_copy(update={"command": profile.command})
    workload, objective = profile.workload, profile.objective
    limits = objective.constraints
    return TuneRequest(
        model=profile.model.source,
        task=profile.model.task,
        target=objective.target,
        at_most=tuple(f"{one.path}={one.bound!r}" for one in limits if one.operator == "<="),
        at_least=tuple(f"{one.path}={one.bound!r}" for one in limits if one.operator == ">="),
        data=None if workload.data.sha256 is None else workload.data.source,
        batch_size=workload.batch_size,
        concurrency=workload.concurrency,
        lengths=workload.lengths,
        budget_s=profile.effort.budget_s,
        seed=profile.effort.seed,
        sampler=profile.effort.sampler,
        command=profile.command,
    )


def places_elsewhere(profile: Profile, path: Path) -> tuple[str, ...]:
    """Return the options in the profile's request that name a storage, or a place not below the profile's directory."""
    request = profile.request or {}
    home = path.absolute().parent.resolve()

    def is_below(place: object) -> bool:
        return isinstance(place, str) and Path(place).expanduser().resolve().is_relative_to(home)

    found = []
    for name in PLACES:
        value = request.get(name)
        places = value if isinstance(value, list) else [] if value is None else [value]
        if not all(map(is_below, places)):
            found.append(name)
    return (*found, "storage") if request.get("storage") is not None else tuple(found)


def changed(profile: Profile, path: Path, request: TuneRequest) -> list[str]:
    """Return what changed since the profile was made, a line a field, and what a newer version asked for."""
    model = request.model if request.model != profile.model.source else None
    result = check_profile(profile, path, model=model, cache_dir=request.cache_dir, trust_code=request.trust_code)
    relevant = [one for one in result.differences if one.consequence != "ignore" and one.field != "artifact"]
    newer = [*profile.newer_keys(), *(f"request.{name}" for name in sorted(unknown_options(profile)))]
    if newer:
        said = f"written by a newer version, left out of the new profile: {', '.join(newer)}"
        return [phrase(one) for one in relevant] + [said]
    return [phrase(one) for one in relevant] or [f"nothing changed since {path.name} was made"]


def unknown_options(profile: Profile) -> set[str]:
    """Return the options in the profile's request that this version does not have."""
    return set(profile.request or {}) - set(TuneRequest.model_fields)


def phrase(difference: Difference) -> str:
    """Return a difference as one line."""
    then, now = ("–" if value is None else value for value in (difference.then, difference.now))
    return f"changed since: {difference.field}: {then} → {now} ({difference.consequence}: {difference.detail})"
