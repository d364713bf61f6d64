"""`autotune retune` on the profile of a whole run: nothing changed, then another version of a library."""

import json
import types

import pytest

from tuner.loading.files import read_profile
from tuner.study.store import StudyStore

METADATA = "Metadata-Version: 2.1\nName: onnxscript\nVersion: 99.0.0\n"


@pytest.fixture(scope="module")
def updated(full_run, command):
    """Return the result of retuning after an update of a library, as its metadata tell, and the study it made."""
    folder = full_run.cwd / "updated" / "onnxscript-99.0.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(METADATA)
    output = full_run.cwd / "again.json"
    words = ("retune", str(full_run.output), "--output", str(output), "--progress", "json")
    result = command(*words, cwd=full_run.cwd, PYTHONPATH=str(folder.parent))
    studies = [path.parent for path in full_run.study.glob("*/measurements.jsonl")]
    return types.SimpleNamespace(result=result, output=output, studies=studies)


def texts(result):
    """Return the texts of the notices."""
    events = [json.loads(line) for line in result.err.splitlines()]
    return [event["text"] for event in events if event["kind"] == "notice"]


def test_nothing_changed(full_run, command):
    """Without a change the finished study answers at once, and that is said."""
    before = read_profile(full_run.output)
    result = command("retune", str(full_run.output), "--progress", "json", cwd=full_run.cwd)
    assert (result.code, texts(result)) == (0, ["nothing changed since p.json was made"])
    assert read_profile(full_run.output) == before


@pytest.mark.slow
def test_another_library_makes_another_study(full_run, updated):
    """The old study stays as it was, the new one measures everything anew."""
    assert updated.result.code == 0, updated.result.err
    (study,) = updated.studies
    assert [record.purpose for record in StudyStore(full_run.study).records()] == ["baseline", "screen", "playoff"]
    assert [record.purpose for record in StudyStore(study).records()] == ["baseline", "screen", "playoff"]


@pytest.mark.slow
def test_old_best_is_tried_first(full_run, updated):
    """The first trial is the old best; its figure is a new one."""
    (study,) = updated.studies
    first = next(record for record in StudyStore(study).records() if record.purpose == "screen")
    old = read_profile(full_run.output).best
    assert first.config == old.config
    assert first.measurement.latency_s.p50 != old.measurement.latency_s.p50


@pytest.mark.slow
def test_request_is_the_old_one(full_run, updated):
    """The new profile answers the old question."""
    old, new = read_profile(full_run.output), read_profile(updated.output)
    assert (new.objective, new.workload) == (old.objective, old.workload)
    assert {**new.request, "output": None} == {**old.request, "output": None}


FLAG = "avx10_512"
"""An instruction set that no CPU of ours has."""


@pytest.fixture(scope="module")
def moved(full_run):
    """Return the profile of an int8 model as from a host with more instructions than this one."""
    document = json.loads(full_run.output.read_text())
    document["hardware"]["isa"] = sorted([*document["hardware"]["isa"], FLAG])
    document["fingerprint"]["hardware"] = "another"
    document["best"]["config"]["artifact"] = [{"step": "ort_dynamic_int8", "settings": {}}]
    path = full_run.cwd / "moved.json"
    path.write_text(json.dumps(document))
    return path


def test_a_lost_flag_leaves_the_fallback(full_run, moved, command):
    """`check` names the flag and says that the fallback is what is served: exit code 5."""
    result = command("check", str(moved), "--json", cwd=full_run.cwd)
    found = json.loads(result.out)
    (isa,) = [one for one in found["differences"] if one["field"] == "isa"]
    assert (result.code, found["serves"]) == (5, "fallback")
    assert (isa["then"], isa["now"], isa["consequence"]) == (FLAG, None, "refuse")


def test_retune_says_which_flag_was_lost(full_run, moved, command):
    """It is said before anything else, and the new profile holds here."""
    output = full_run.cwd / "here.json"
    result = command("retune", str(moved), "--output", str(output), "--progress", "json", cwd=full_run.cwd)
    assert result.code == 0, result.err
    assert texts(result)[0].startswith(f"changed since: isa: {FLAG} → – (refuse: this CPU lacks {FLAG}")
    assert command("check", str(output), cwd=full_run.cwd).code == 0


@pytest.mark.slow
def test_retune_after_a_lost_flag_measures_anew(full_run, moved, command):
    """In a study of its own everything is measured here; the old best is fitted to this space and tried first."""
    words = ("retune", str(moved), "--output", "anew.json", "--study", "anew", "--progress", "json")
    result = command(*words, cwd=full_run.cwd)
    assert result.code == 0, result.err
    records = StudyStore(full_run.cwd / "anew").records()
    assert [record.purpose for record in records] == ["baseline", "screen", "playoff"]
    assert records[1].config.artifact == ()
    assert read_profile(full_run.cwd / "anew.json").hardware["isa"] == read_profile(full_run.output).hardware["isa"]
