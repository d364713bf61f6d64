"""The whole line from a request to a profile: plan, prepare, measure the baseline, search, race, play off."""

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

from tuner.artifacts.places import cache_directory
from tuner.artifacts.pruning import prune, register_profile
from tuner.artifacts.store import Store
from tuner.hardware.detection import detect
from tuner.records.events import Event, OnEvent
from tuner.records.profile import Profile
from tuner.runner.sweeping import become_subreaper, sweep_leftovers
from tuner.study.store import StudyStore
from tuner.study.threads import one_thread
from tuner.tuning.earlier import Earlier, nearest_earlier, start_from
from tuner.tuning.interrupting import Interrupts
from tuner.tuning.planning import Plan, make_plan
from tuner.tuning.request import TuneRequest, make_request, output_path, parse_duration
from tuner.tuning.result import write_profile
from tuner.tuning.studies import open_study, stored_profile


@dataclass(frozen=True)
class TuneResult:
    """A profile, where it was written, and whether it came from a study that was finished before."""

    profile: Profile
    path: Path
    is_reused: bool


def tune(*, on_event: OnEvent = lambda event: None, budget: str | None = None, **options: object) -> Profile:  # noqa: ARG005
    """Tune a model on this host and write a profile.

    Args:
        on_event: Told of progress.
        budget: Wall time, for example ``"15m"``.
        **options: The fields of `tuner.tuning.request.TuneRequest`: ``model``, ``target``, ``lengths``, ``output``, ….

    Raises:
        TunerError: As the command line reports it; the class says the exit code.
    """
    if budget is not None:
        options["budget_s"] = parse_duration(budget)
    return run(make_request(options), on_event).profile


def run(request: TuneRequest, on_event: OnEvent, *, earlier: Earlier | None = None) -> TuneResult:
    """Run one request; a finished study returns its profile at once.

    Args:
        request: What to tune.
        on_event: Told of progress.
        earlier: An older result to start from; None takes the nearest that this cache knows.
    """
    started = time.monotonic()
    output = output_path(request)
    cache_dir = cache_directory(request.cache_dir)
    store = Store(cache_dir)
    host = detect()
    plan = make_plan(request, host, cache_dir)
    if request.storage is not None:
        from tuner.study.optuna_study import check_storage  # Optuna is slow to import

        check_storage(request.storage)
    study = open_study(plan, on_event)
    with study.in_use():
        profile = stored_profile(study, plan)
        if profile is not None:
            on_event(Event(kind="done", text="this study is finished: its profile (a larger --budget searches on)"))
            return TuneResult(profile, kept(profile, output, store), is_reused=True)
        if earlier is None and request.sampler == "auto" and not study.records():
            earlier = start(plan, store, on_event)
        profile = tune_study(plan, study, store, started=started, on_event=on_event, earlier=earlier)
        path = kept(profile, output, store)
        prune(store)
        return TuneResult(profile, path, is_reused=False)


def start(plan: Plan, store: Store, on_event: OnEvent) -> Earlier | None:
    """Return the nearest older result as a place to start, and say so; None if there is none."""
    found = nearest_earlier(plan, store.root)
    if found is None:
        return None
    path, profile = found
    on_event(Event(kind="notice", text=f"the search starts from what was good in {path} (no figure is taken over)"))
    return start_from(profile, plan.host, model_sha256=plan.model.sha256)


def kept(profile: Profile, output: Path, store: Store) -> Path:
    """Write a profile, and keep the artifacts that it needs from being pruned."""
    path = write_profile(profile, output)
    register_profile(store, profile, path)
    return path


def tune_study(
    plan: Plan,
    study: StudyStore,
    store: Store,
    *,
    started: float,
    on_event: OnEvent,
    earlier: Earlier | None = None,
) -> Profile:
    """Search and decide; on Ctrl-C or SIGTERM what is known becomes an incomplete profile."""
    # imported here: a finished study answers without Optuna, SQLAlchemy and numpy
    with one_thread():
        import scipy.linalg  # noqa: F401 - loaded here, for good

        from tuner.tuning.finale import finish
        from tuner.tuning.search import search
        from tuner.tuning.session import TuningSession
        from tuner.tuning.trials import measure_baseline

    become_subreaper()
    sweep_leftovers(study.directory / "workers.jsonl")
    interrupts = Interrupts()
    session = TuningSession(plan, study, store, started=started, on_event=interrupts.passed_on(on_event))
    session.earlier = earlier
    with interrupts, contextlib.closing(session):
        try:
            session.prepare()
            measure_baseline(session)
            search(session)
            return finish(session)
        except KeyboardInterrupt:
            interrupts.take()
            if session.baseline is None:
                raise
            return session.interrupted_profile()
