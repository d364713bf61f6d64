"""Finds the study of a plan on disk and what it holds already; it measures nothing."""

import re
from pathlib import Path

from tuner.errors import UsageError
from tuner.records.events import Event, OnEvent
from tuner.records.profile import Profile
from tuner.study.store import StudyState, StudyStore
from tuner.tuning.planning import Plan

PROFILE = "profile.json"


def open_study(plan: Plan, on_event: OnEvent) -> StudyStore:
    """Return the study of this plan: --study, or a directory named after the model and the key.

    Where --study holds another key, that study stays untouched and a directory below it is taken.
    """
    request = plan.request
    directory = Path(request.study) if request.study else Path("studies") / f"{slug(request.model)}-{plan.key[:8]}"
    study = StudyStore(directory.absolute())
    study.open()
    state = study.state()
    if state is not None and state.key != plan.key:
        differing = [name for name, digest in plan.key_parts.items() if state.parts.get(name) != digest]
        study = StudyStore((directory / plan.key[:8]).absolute())
        study.open()
        text = (
            f"{directory} belongs to another study ({', '.join(differing)} differ): this one goes to {study.directory}"
        )
        on_event(Event(kind="notice", text=text))
        state = study.state()
    if state is None:
        study.save_state(StudyState(key=plan.key, parts=plan.key_parts))
    return study


def stored_profile(study: StudyStore, plan: Plan) -> Profile | None:
    """Return the profile of a finished study, None if this request asks for more than the run that finished it."""
    state = study.state()
    if state is None or state.finished is None:
        return None
    budget_s, trials = state.finished.get("budget_s"), state.finished.get("trials")
    request = plan.request
    if isinstance(budget_s, (int, float)) and request.budget_s > budget_s:
        return None
    if isinstance(trials, int) and (request.trials is None or request.trials > trials):
        return None
    try:
        return Profile.from_json((study.directory / PROFILE).read_bytes(), source=PROFILE)
    except (OSError, UsageError):
        return None


def slug(model: str) -> str:
    """Return a name for files from a model's name: letters, digits, dot, dash and underscore."""
    text = model.removeprefix("pkg:").removeprefix("py:").rstrip("/")
    name = text.split("/")[0] if model.startswith("pkg:") else Path(text).name
    return re.sub(r"[^\w.\-]+", "_", name).strip("._")[:60] or "model"
