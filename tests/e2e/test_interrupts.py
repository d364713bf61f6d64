"""Runs that are killed, interrupted or in each other's way."""

import json
import signal
import types

import psutil
import pytest

from tuner.loading.files import read_profile
from tuner.study.store import StudyStore

FAST_US = 4000


def leftovers(study):
    """Return the workers of a study that still run."""
    pids = [json.loads(line)["pid"] for line in (study / "workers.jsonl").read_text().splitlines()]
    return [pid for pid in pids if psutil.pid_exists(pid)]


@pytest.fixture(scope="module")
def killed(tmp_path_factory, start, command, tune_options):
    """Return what was seen of a run killed after its first trial, of its resume, and of a rival meanwhile."""
    cwd = tmp_path_factory.mktemp("killed")
    options = tune_options(cwd, FAST_US, "--budget", "2m")
    first = start("tune", *options, cwd=cwd)
    first.wait_for("trial")
    workers = psutil.Process(first.process.pid).children(recursive=True)
    first.end(signal.SIGKILL)
    _, alive = psutil.wait_procs(workers, timeout=20)
    before = StudyStore(cwd / "study").records()
    second = start("tune", *options, cwd=cwd)
    second.wait_for("baseline")
    rival = command("tune", *options, cwd=cwd)
    second.wait_for("trial")
    ended = second.end(signal.SIGINT)
    after = StudyStore(cwd / "study").records()
    return types.SimpleNamespace(cwd=cwd, alive=alive, before=before, after=after, rival=rival, ended=ended)


def test_no_worker_survives_a_kill(killed):
    """Kill -9 of the tuner takes its workers along, stopped ones too."""
    assert killed.alive == []


def test_measured_trials_survive_a_kill(killed):
    """What was measured before the kill is still there."""
    assert killed.after[: len(killed.before)] == killed.before


def test_resume_repeats_nothing(killed):
    """No configuration is measured twice, the baseline neither."""
    tried = [record.config.digest() for record in killed.after]
    assert (len(tried), sorted(set(tried))) == (len(killed.before) + 1, sorted(tried))


def test_two_runs_on_one_study_refuse_each_other(killed):
    """The second one ends at once with exit code 3 and one line that says why."""
    assert (killed.rival.code, killed.rival.err.count("\n"), "in use by another run" in killed.rival.err) == (
        3,
        1,
        True,
    )


def test_interrupt_is_130(killed):
    """Ctrl-C ends cleanly with its own exit code."""
    assert killed.ended.code == 130


def test_interrupt_writes_an_incomplete_profile(killed):
    """Best is the baseline, the best trial the unconfirmed challenger."""
    profile = read_profile(killed.cwd / "p.json")
    assert (profile.incomplete, profile.best.config, profile.challenger is not None, profile.speedup) == (
        True,
        profile.baseline.config,
        True,
        None,
    )


def test_interrupt_leaves_no_worker(killed):
    """Nothing of the run is left."""
    assert leftovers(killed.cwd / "study") == []


@pytest.fixture(scope="module")
def terminated(tmp_path_factory, start, tune_options, full_run):
    """Return what was seen of a run that SIGTERM ends, with a complete profile of an earlier one at --output."""
    cwd = tmp_path_factory.mktemp("terminated")
    (cwd / "p.json").write_bytes(full_run.output.read_bytes())
    running = start("tune", *tune_options(cwd, FAST_US, "--budget", "2m"), cwd=cwd)
    running.wait_for("plan")
    return types.SimpleNamespace(cwd=cwd, ended=running.end(signal.SIGTERM), before=full_run.output.read_bytes())


def test_sigterm_is_an_interrupt(terminated):
    """SIGTERM ends as Ctrl-C does."""
    assert terminated.ended.code == 130


def test_incomplete_never_replaces_complete(terminated):
    """The complete profile stands, the incomplete one is beside it."""
    beside = read_profile(terminated.cwd / "p.incomplete.json")
    assert ((terminated.cwd / "p.json").read_bytes(), beside.incomplete) == (terminated.before, True)


def test_sigterm_leaves_no_worker(terminated):
    """Nothing of the run is left."""
    assert leftovers(terminated.cwd / "study") == []


def test_interrupt_before_the_baseline(tmp_path, start, tune_options):
    """With nothing measured yet, there is no profile and one line."""
    running = start("tune", *tune_options(tmp_path, FAST_US, "--budget", "2m"), cwd=tmp_path)
    running.wait_for("start")
    ended = running.end(signal.SIGINT)
    said = [line for line in ended.err if not line.startswith("{")]
    assert (ended.code, len(said), (tmp_path / "p.json").exists()) == (130, 1, False)
