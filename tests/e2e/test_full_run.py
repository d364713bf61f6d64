"""One whole run, and what can be done with its profile."""

import json
import sys

import pytest

from tuner.loading.files import read_profile
from tuner.study.store import StudyStore


def test_ends_well(full_run):
    """A profile was written: exit code 0, although the current directory is full of traps."""
    assert full_run.result.code == 0, full_run.result.err


def test_json_is_one_document(full_run):
    """Standard output is exactly one document: the profile as it was written."""
    assert json.loads(full_run.result.out) == json.loads(full_run.output.read_text())


def test_progress_is_on_standard_error(full_run):
    """Progress is one event a line, from the start to the verdict."""
    kinds = [json.loads(line)["kind"] for line in full_run.result.err.splitlines()]
    assert (kinds[0], kinds[-1], {"baseline", "trial", "playoff"} <= set(kinds)) == ("start", "verdict", True)


def test_profile_is_valid(full_run):
    """The profile reads back under all checks for strangers."""
    assert not read_profile(full_run.output).incomplete


def test_clear_gain_is_a_win(full_run):
    """A hundred times faster is confirmed by the playoff."""
    profile = read_profile(full_run.output)
    assert (profile.verdict, profile.speedup.ratio > 10, profile.speedup.pairs) == ("WIN", True, 5)


def test_best_is_what_was_measured(full_run):
    """The winner is a config of the space, with what was in force."""
    best = read_profile(full_run.output).best
    assert (best.config.backend, best.measurement.effective.threads) == ("fake", 1)


def test_effort_is_accounted(full_run):
    """Wall time is build, measuring and overhead."""
    effort = read_profile(full_run.output).effort
    assert effort.build_s + effort.measure_s + effort.overhead_s == pytest.approx(effort.wall_s)


def test_study_holds_every_measurement(full_run):
    """Baseline, trial and playoff stand in measurements.jsonl."""
    purposes = [record.purpose for record in StudyStore(full_run.study).records()]
    assert purposes == ["baseline", "screen", "playoff"]


def test_nothing_else_is_written(full_run):
    """Only what was asked for is in the current directory."""
    names = {path.name for path in full_run.cwd.iterdir() if not path.name.endswith(".py")}
    assert names == {"baseline.json", "cache", "p.json", "study"}


def test_rerun_returns_the_profile(full_run, command):
    """The same command again returns the stored profile and measures nothing."""
    before = (full_run.study / "measurements.jsonl").read_bytes()
    again = command("tune", *full_run.options, "--json", cwd=full_run.cwd)
    after = (full_run.study / "measurements.jsonl").read_bytes()
    assert (again.code, again.out, after) == (0, full_run.result.out, before)


def test_show(full_run, command):
    """`show` prints the summary with the verdict first."""
    shown = command("show", "p.json", cwd=full_run.cwd)
    assert (shown.code, shown.out.split()[0], shown.err) == (0, "WIN", "")


def test_show_json(full_run, command):
    """`show --json` prints one document."""
    assert json.loads(command("show", "p.json", "--json", cwd=full_run.cwd).out)["verdict"] == "WIN"


def test_show_study(full_run, command):
    """`show STUDY` lists its trials."""
    shown = command("show", "study", "--json", cwd=full_run.cwd)
    assert [trial["purpose"] for trial in json.loads(shown.out)["trials"]] == ["baseline", "screen", "playoff"]


def test_check_holds(full_run, command):
    """Where it was made, a profile holds: exit code 0."""
    checked = command("check", "p.json", "--json", "--cache-dir", "cache", cwd=full_run.cwd)
    assert (checked.code, json.loads(checked.out)["holds"]) == (0, True)


def test_check_does_not_hold(full_run, command, tmp_path):
    """Another model in the same place: exit code 5."""
    (tmp_path / "mean.onnx").write_bytes(b"")
    checked = command("check", "p.json", "--json", "--model", str(tmp_path / "gone.onnx"), cwd=full_run.cwd)
    assert (checked.code, json.loads(checked.out)["holds"]) == (5, False)


def test_exec_becomes_the_command(full_run, command):
    """`exec` ends with the command's exit code, its arguments untouched."""
    ended = command("exec", "p.json", "--", sys.executable, "-c", "import sys; sys.exit(7)", "--json", cwd=full_run.cwd)
    assert ended.code == 7


def test_exec_puts_the_settings_in_force(full_run, command):
    """The mask is set before the program starts, and the user's thread variables are gone."""
    code = "import os; print(len(os.sched_getaffinity(0)), os.environ.get('OMP_NUM_THREADS'))"
    ended = command("exec", "p.json", "--", sys.executable, "-P", "-c", code, cwd=full_run.cwd, OMP_NUM_THREADS="64")
    n_cpus = read_profile(full_run.output).best.config.process.placement.n_cpus
    assert ended.out.split() == [str(n_cpus), "None"]


def test_load_serves_the_best(full_run, command):
    """A program started by `exec` loads the profile with everything in force."""
    code = (
        "import numpy, tuner\n"
        "with tuner.load('p.json', cache_dir='cache') as model:\n"
        "    print(model.run({'x': numpy.ones((2, 16), 'float32')})['output'], model.not_applied)\n"
    )
    ended = command("exec", "p.json", "--", sys.executable, "-P", "-c", code, cwd=full_run.cwd)
    assert (ended.out, ended.code) == ("[1. 1.] {}\n", 0), ended.err


def test_another_key_goes_below(full_run, start):
    """With another seed the study in --study stays, and the new one goes to DIR/<8 hex>, which is said."""
    running = start("tune", *full_run.options, "--seed", "1", cwd=full_run.cwd)
    text = running.wait_for("notice")["text"]
    running.wait_for("start")
    running.end(9)
    [below] = [path for path in full_run.study.iterdir() if (path / "study.json").is_file()]
    assert (str(below) in text, len(below.name)) == (True, 8)
