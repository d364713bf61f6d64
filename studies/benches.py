"""Opens a session on a model as the tuner does, baseline measured, for the scripts here; it searches nothing."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from tuner.artifacts.places import cache_directory
from tuner.artifacts.store import Store
from tuner.hardware.detection import detect
from tuner.runner.sweeping import become_subreaper
from tuner.study.store import StudyStore
from tuner.tuning.planning import make_plan
from tuner.tuning.request import make_request
from tuner.tuning.session import TuningSession
from tuner.tuning.trials import measure_baseline

__all__ = ["opened"]


@contextlib.contextmanager
def opened(directory: Path, **asked: object) -> Iterator[TuningSession]:
    """Give a session in a study directory: workload prepared, host audited, baseline measured.

    Args:
        directory: Of the study; it is locked meanwhile.
        asked: Fields of the request (``model``, ``lengths``, ``batch_size``, ``budget_s``, …).
    """
    plan = make_plan(make_request(asked), detect(), cache_directory(None))
    study = StudyStore(directory.absolute())
    study.open()
    become_subreaper()
    store = Store(cache_directory(None))
    session = TuningSession(plan, study, store, started=time.monotonic(), on_event=lambda _: None)
    with study.in_use(), contextlib.closing(session):
        session.prepare()
        measure_baseline(session)
        yield session
