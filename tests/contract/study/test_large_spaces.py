"""One suggestion over ten thousand listed configurations: little CPU time, and small in memory."""

import json
import subprocess
import sys

import pytest

POINTS = 10_000
TRIALS = 60
PROGRAM = """
import json, resource, sys, time
from pathlib import Path

from tuner.study.threads import one_thread

with one_thread():
    import scipy.linalg

from tuner.records.config import Config
from tuner.space.loading import load_space
from tuner.study.optuna_study import TrialBook, sampler_of
from tuner.study.store import StudyStore, TrialRecord
from tuner.study.suggesting import Suggester

folder, n_trials = Path(sys.argv[1]), int(sys.argv[2])
space = load_space(sorted(folder.glob("*.toml"))).resolve({}, {}, {})
book = TrialBook(folder, None, space, sampler=sampler_of("auto", 0, n_seeds=4), constraints=("fidelity.x",))
began = time.process_time()
suggester = Suggester(book, space, seed=0, records=[], build_s=lambda config: 20.0 if config.artifact else 0.0)
listed_s = time.process_time() - began
store, seconds = StudyStore(folder / "study"), []
store.open()
for number in range(n_trials):
    began = time.process_time()
    suggester.should_stop()
    found = suggester.next(1e6)
    suggested = time.process_time()
    threads = found.config.session["threads"]
    value = -0.2 * threads + 0.003 * (number % 7) - 0.5 * bool(found.config.artifact)
    record = TrialRecord(
        number=number, purpose=found.purpose, config=found.config, state="measured", value=value,
        pair_sd=0.01, build_s=0.0, wall_s=4.0,
    )
    store.append(record)
    suggester.note(record)
    book.tell(found.trial, record)
    seconds.append((suggested - began, time.process_time() - suggested))
print(json.dumps({
    "size": len(suggester.table),
    "listed_s": listed_s,
    "suggest_s": [one for one, _ in seconds],
    "store_s": [one for _, one in seconds],
    "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
"""
ADDED = """
[session.block]
kind = "choice"
values = [0, 16, 32, 64, 128]

[session.arena]
kind = "choice"
values = [true, false]

[process.placement.policy]
kind = "choice"
values = ["none", "spread", "compact"]
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory, write_engine_space):
    """Return what a search in a process of its own took: its own import of Optuna, numpy and scipy included."""
    folder = tmp_path_factory.mktemp("large")
    write_engine_space(folder, ADDED, threads=16)
    argv = [sys.executable, "-P", "-c", PROGRAM, str(folder), str(TRIALS)]
    ended = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=600)
    return json.loads(ended.stdout)


@pytest.mark.slow
def test_a_suggestion_takes_a_tenth_of_a_second(found):
    """Over 10,000 points and 60 trials the median suggestion, whether to stop included, is under 100 ms of CPU."""
    assert found["size"] >= POINTS
    assert sorted(found["suggest_s"])[TRIALS // 2] < 0.1


@pytest.mark.slow
def test_the_parent_stays_small(found):
    """Under 400 MB, all libraries of the search loaded."""
    assert found["peak_bytes"] < 400e6


@pytest.mark.slow
def test_deciding_and_storing_is_a_twentieth_of_a_trial(found):
    """Of trials of four seconds, suggesting, storing and telling take less than 5% of the time, the disk aside."""
    spent_s = sum(found["suggest_s"]) + sum(found["store_s"]) + found["listed_s"]
    assert spent_s < 0.05 * (spent_s + 4.0 * TRIALS)
