"""Which older profile a new study starts from, and what is taken of it: configurations, never figures."""

import types

import pytest

from tuner.artifacts.pruning import register_profile
from tuner.artifacts.store import Store
from tuner.hardware.detection import detect
from tuner.records.config import Config
from tuner.records.workload import Objective, Workload
from tuner.tuning.earlier import nearest_earlier, start_from

LIKE = {"fingerprint": {"hardware": "here", "software": "s", "model": "m", "workload": "w"}}
ELSEWHERE = {"fingerprint": {**LIKE["fingerprint"], "hardware": "there"}}
OTHER_MODEL = {"model": {"source": "other.onnx", "sha256": "1" * 64, "task": "forward"}}
OTHER_TASK = {"model": {"source": "mean.onnx", "sha256": "0" * 64, "task": "fill-mask"}}


@pytest.fixture
def plan():
    """Return what is looked at of a plan."""
    return types.SimpleNamespace(
        model=types.SimpleNamespace(sha256="0" * 64, task="forward"),
        host=types.SimpleNamespace(fingerprint="here"),
        objective=Objective(),
        workload=Workload(task="forward", lengths=(128,)),
        backends=("onnxruntime",),
    )


@pytest.fixture
def known(profile, tmp_path):
    """Return a function that writes profiles by name, each registered in one cache; it returns the cache's root."""

    def write(**changes):
        store = Store(tmp_path / "cache")
        for name, fields in changes.items():
            one, path = profile(**fields), tmp_path / f"{name}.json"
            path.write_text(one.to_json())
            register_profile(store, one, path)
        return store.root

    return write


def chosen(plan, root):
    """Return the name of the profile that is nearest."""
    found = nearest_earlier(plan, root)
    return found and found[0].stem


def of_lengths(*lengths):
    """Return the field of a profile for texts of these lengths on this host."""
    return {**LIKE, "workload": {"task": "forward", "lengths": lengths}}


@pytest.mark.parametrize(
    ("nearer", "farther"),
    [
        (LIKE, LIKE | OTHER_MODEL),
        (LIKE, ELSEWHERE),
        (ELSEWHERE, LIKE | OTHER_MODEL),
        (LIKE, LIKE | {"objective": {"target": "latency_s.p99"}}),
        (of_lengths(256), of_lengths(512)),
        (of_lengths(64), of_lengths(128, 1024)),
        (LIKE | {"created_at": "2026-02-01T00:00:00+00:00"}, LIKE),
    ],
    ids=["model", "host", "model before host", "target", "length", "longest length", "newest"],
)
def test_the_nearer_one_is_taken(plan, known, nearer, farther):
    """Whatever the order in which they are found."""
    assert chosen(plan, known(a=nearer, b=farther)) == "a"
    assert chosen(plan, known(a=farther, b=nearer)) == "b"


@pytest.mark.parametrize(
    "fields",
    [OTHER_TASK, {"incomplete": True}, {"best": {"config": {"backend": "gone"}}}],
    ids=["another task", "incomplete", "an engine that is not searched"],
)
def test_what_says_nothing_is_passed_over(plan, known, profile_document, fields):
    """Such profiles are no place to start."""
    fields = {key: {**profile_document()[key], **value} if key == "best" else value for key, value in fields.items()}
    assert chosen(plan, known(a=LIKE | fields)) is None


def test_lost_and_damaged_profiles_are_passed_over(plan, known, tmp_path):
    """A profile that was deleted or overwritten is no error."""
    root = known(a=LIKE, b=LIKE, c=ELSEWHERE)
    (tmp_path / "a.json").unlink()
    (tmp_path / "b.json").write_text("{")
    assert chosen(plan, root) == "c"


def test_no_earlier_profile(plan, tmp_path):
    """A new cache knows none."""
    assert nearest_earlier(plan, tmp_path) is None


def test_configs_only(profile):
    """Of a profile without its study the best config is what is taken."""
    made = profile()
    found = start_from(made, detect())
    assert ([config.backend for config in found.configs], found.records) == (["onnxruntime"], [])


def test_an_unconfirmed_challenger_comes_before_the_baseline(profile, profile_document):
    """Where the baseline stayed best, the challenger is tried first."""
    document = profile_document()
    challenger = {**document["best"], "config": {"backend": "openvino"}}
    made = profile(best={**document["best"], "config": document["baseline"]["config"]}, challenger=challenger)
    assert start_from(made, detect()).configs[:2] == [Config(backend="openvino"), made.baseline.config]


def test_alike_is_the_same_model_on_the_same_host(profile):
    """Anything else has its families screened again."""
    host = detect()
    same = profile(fingerprint={**LIKE["fingerprint"], "hardware": host.fingerprint})
    assert start_from(same, host).is_alike
    assert not start_from(same, host, model_sha256="1" * 64).is_alike
    assert not start_from(profile(), host).is_alike
