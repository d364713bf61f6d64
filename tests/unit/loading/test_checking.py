"""Does a profile hold here: field by field, and what follows."""

import json

import pytest

from tuner.errors import ProfileMismatch
from tuner.hardware.detection import detect
from tuner.loading.checking import check_profile, needs_of, refuse, relevant_software
from tuner.models.inspect import inspect
from tuner.plugins import installed_versions
from tuner.records.config import Config


@pytest.fixture
def own(profile, tiny_onnx):
    """Return a function that makes a profile of this host, these libraries and the tiny model."""

    def make(**changes):
        facts = inspect(str(tiny_onnx), None)
        document = {
            "hardware": detect().model_dump(mode="json"),
            "software": installed_versions("onnxruntime", "numpy"),
            "model": {"source": str(tiny_onnx), "sha256": facts.sha256, "task": facts.task},
        }
        return profile(**{**document, **changes})

    return make


@pytest.fixture
def check(tmp_path):
    """Return a function that checks a profile with an empty cache."""
    return lambda profile, **options: check_profile(
        profile, tmp_path / "p.json", cache_dir=str(tmp_path / "cache"), **options
    )


def fields(result):
    """Return the differing fields with their consequences."""
    return [(one.field, one.consequence) for one in result.differences]


def test_same_everything_holds(own, check):
    """Where nothing changed, nothing differs."""
    result = check(own())
    assert (result.holds, result.serves, fields(result)) == (True, "best", [])


def test_moved_model_holds(own, check, tiny_onnx, tmp_path):
    """A model that moved is the same model."""
    moved = tmp_path / "moved.onnx"
    moved.write_bytes(tiny_onnx.read_bytes())
    assert check(own(), model=str(moved)).holds


def test_keys_of_a_newer_version_hold(own, check):
    """What a newer version added refuses nothing; a setting of the best config that is not followed is a warning."""
    document = json.loads(own().to_json())
    document["best"]["config"]["process"]["io_priority"] = "idle"
    document["effort"]["energy_j"] = 5.0
    result = check(own(**{name: document[name] for name in ("best", "effort")}))
    assert (result.holds, result.serves) == (True, "best")
    assert fields(result) == [("best.config.process.io_priority", "warn"), ("effort.energy_j", "ignore")]


def test_changed_model_refuses(own, check):
    """A changed byte is another model."""
    result = check(own(model={**own().model.model_dump(), "sha256": "f" * 64}))
    assert (result.holds, fields(result)) == (False, [("model.sha256", "refuse")])


def test_absent_model_refuses(own, check):
    """A model that is not there is said, with the way to name it."""
    result = check(own(model={**own().model.model_dump(), "source": "./gone.onnx"}))
    assert (fields(result), "--model" in result.differences[0].detail) == ([("model", "refuse")], True)


def test_missing_artifact_refuses(own, check, profile_document):
    """An artifact that is not there is said before anything is opened."""
    best = profile_document()["best"] | {"artifacts": [{"path": "a/m.onnx", "sha256": "0" * 64, "bytes": 1}]}
    assert fields(check(own(best=best))) == [("artifact", "refuse")]


def test_unknown_backend_refuses(own, check, profile_document):
    """A backend that is not installed cannot serve."""
    best = profile_document()["best"]
    best["config"]["backend"] = "tensorrt"
    assert ("backend", "refuse") in fields(check(own(best=best)))


def test_other_minor_version_falls_back(own, check):
    """Another minor version of the engine is checked again before it is trusted."""
    result = check(own(software={"onnxruntime": "1.0.0"}))
    assert (result.holds, result.serves) == (False, "fallback")


def test_other_libraries_may_change(own, check):
    """A library that the best config does not run on does not matter."""
    assert check(own(software={"openvino": "1990.0", **installed_versions("onnxruntime")})).holds


def test_strongest_difference_comes_first(own, check):
    """The first line says what decides."""
    result = check(own(software={"onnxruntime": "1.0.0"}, model={**own().model.model_dump(), "sha256": "f" * 64}))
    assert [one.consequence for one in result.differences] == ["refuse", "fallback"]


def test_refusal_names_profile_and_field(own, check, tmp_path):
    """Strict loading says what does not hold and what to do."""
    result = check(own(software={"onnxruntime": "1.0.0"}))
    with pytest.raises(ProfileMismatch, match=r"p\.json does not hold here: software\.onnxruntime: .*autotune check"):
        refuse(result, tmp_path / "p.json")


def test_relevant_software_of_a_foreign_backend(own, profile_document):
    """Of a backend that is not here nothing is known."""
    best = profile_document()["best"]
    best["config"]["backend"] = "tensorrt"
    assert relevant_software(own(best=best)) == {}


@pytest.mark.parametrize(
    ("config", "n_cpus", "is_isa_bound"),
    [
        ({"backend": "pytorch"}, 1, False),
        ({"backend": "pytorch", "session": {"threads": 4}}, 4, False),
        ({"backend": "onnxruntime", "session": {"intra_op_threads": 3}}, 3, False),
        ({"backend": "fake", "process": {"env": {"OMP_NUM_THREADS": "5", "OMP_PROC_BIND": "true"}}}, 5, False),
        ({"backend": "pytorch", "session": {"precision": "bf16"}}, 1, True),
        ({"backend": "onnxruntime", "artifact": [{"step": "ort_dynamic_int8"}]}, 1, True),
        ({"backend": "pytorch", "process": {"placement": {"policy": "spread", "n_cpus": 8}}}, 8, False),
    ],
)
def test_needs(profile, config, n_cpus, is_isa_bound):
    """What a config needs of a host is read from its settings."""
    needs = needs_of(Config.from_json(json.dumps(config)), profile())
    assert (needs.n_cpus, needs.is_isa_bound) == (n_cpus, is_isa_bound)


@pytest.mark.parametrize("session", [{"bogus": 1}, {"intra_op_threads": -1}])
def test_settings_that_the_engine_refuses(own, check, session):
    """A best config that no load could open does not hold; the fallback is served."""
    document = json.loads(own().to_json())
    document["best"]["config"] |= {"backend": "onnxruntime", "session": session}
    result = check(type(own()).from_json(json.dumps(document), source="p.json"))
    assert (result.holds, result.serves, fields(result)) == (False, "fallback", [("best.config", "refuse")])


def test_artifact_without_files(own, check):
    """A chain of steps of which the profile names no file cannot be opened."""
    document = json.loads(own().to_json())
    document["best"]["config"]["artifact"] = [{"step": "nope", "settings": {}}]
    result = check(type(own()).from_json(json.dumps(document), source="p.json"))
    assert (result.serves, fields(result)) == ("fallback", [("best.config", "refuse")])


def test_relative_model_is_found_beside_the_profile(own, check, tiny_onnx, tmp_path):
    """A profile that was made in its own directory holds from every other."""
    (tmp_path / "beside.onnx").write_bytes(tiny_onnx.read_bytes())
    document = json.loads(own().to_json())
    document["model"]["source"] = "beside.onnx"
    assert check(type(own()).from_json(json.dumps(document), source="p.json")).holds
