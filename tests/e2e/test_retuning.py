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
