"""Profiles on disk, and what a profile sums up of its trials."""

import json

import pytest

from tuner.errors import HostError
from tuner.records.config import Config
from tuner.records.measurement import Failure
from tuner.records.profile import Profile
from tuner.study.store import TrialRecord
from tuner.tuning.result import count_states, dominates, failures, major_minor, write_profile


def trial(number, state="measured", **fields):
    """Return a record of a trial."""
    value = None if state == "failed" else 0.0
    return TrialRecord(
        number=number, purpose="search", config=Config(backend="fake"), state=state, value=value, **fields
    )


def test_written_profile_reads_back(profile, tmp_path):
    """What is written is the profile."""
    path = write_profile(profile(), tmp_path / "p.json")
    assert Profile.from_json(path.read_bytes()) == profile()


def test_profile_is_strict_json(profile, tmp_path):
    """The file is one JSON document without NaN."""
    path = write_profile(profile(), tmp_path / "p.json")
    assert json.loads(path.read_text(), parse_constant=pytest.fail)["schema"] == "tuner.profile/1"


def test_complete_replaces_complete(profile, tmp_path):
    """A new result takes the place of the old."""
    write_profile(profile(), tmp_path / "p.json")
    path = write_profile(profile(verdict="INCONCLUSIVE"), tmp_path / "p.json")
    assert Profile.from_json(path.read_bytes()).verdict == "INCONCLUSIVE"


def test_incomplete_never_replaces_complete(profile, tmp_path):
    """An interrupted run goes beside the complete profile."""
    before = write_profile(profile(), tmp_path / "p.json").read_bytes()
    path = write_profile(profile(incomplete=True), tmp_path / "p.json")
    assert (path.name, (tmp_path / "p.json").read_bytes()) == ("p.incomplete.json", before)


@pytest.mark.parametrize("before", [None, "{", "incomplete"])
def test_incomplete_replaces_anything_else(profile, tmp_path, before):
    """Where there is no complete profile, an incomplete one is written in place."""
    if before == "incomplete":
        write_profile(profile(incomplete=True), tmp_path / "p.json")
    elif before is not None:
        (tmp_path / "p.json").write_text(before)
    assert write_profile(profile(incomplete=True), tmp_path / "p.json") == tmp_path / "p.json"


def test_full_disk(profile, tmp_path, full_disk):
    """A profile that does not fit ends in one line."""
    with full_disk(100), pytest.raises(HostError, match=r"p\.json cannot be written \(.*\); the study keeps"):
        write_profile(profile(), tmp_path / "p.json")


def test_full_disk_leaves_the_old_profile(profile, tmp_path, full_disk):
    """Nothing is half-written: the old profile stands, alone."""
    before = write_profile(profile(), tmp_path / "p.json").read_bytes()
    with full_disk(100), pytest.raises(HostError):
        write_profile(profile(verdict="INCONCLUSIVE"), tmp_path / "p.json")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("p.json", before)]


def test_states_are_counted():
    """Rejected are the failed and the infeasible."""
    records = [
        trial(1),
        trial(2, "pruned"),
        trial(3, "failed", failure=Failure(stage="load", kind="crash", message="m")),
        trial(4, violations={"load_s<=1": 0.5}),
        trial(5, violations={"load_s<=1": 0.0}),
    ]
    assert count_states(records) == {"pruned": 1, "rejected": 2}


def test_failures_by_kind():
    """Failures are counted by kind with the first as example; a broken constraint is one kind."""
    crash = Failure(stage="load", kind="crash", message="SIGSEGV")
    records = [
        trial(1, "failed", failure=crash),
        trial(2, "failed", failure=crash.model_copy(update={"message": "SIGBUS"})),
        trial(3, violations={"load_s<=1": 0.5}),
    ]
    found = [(one.kind, one.count, one.example) for one in failures(records)]
    assert found == [
        ("crash", 2, "fake source: SIGSEGV"),
        ("infeasible", 1, "fake source: misses load_s<=1"),
    ]


def test_patch_releases_are_one_engine():
    """Only major and minor versions are in the fingerprint."""
    assert major_minor({"torch": "2.13.0+cpu", "numpy": "2"}) == {"numpy": "2", "torch": "2.13"}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((1, 1, 1), (2, 1, 1), True),
        ((1, 1, 1), (1, 1, 1), False),
        ((1, 2, 1), (2, 1, 1), False),
        ((1, 1, 1), (1, 1, None), True),
        ((1, None, 1), (1, 1, 1), False),
    ],
)
def test_dominates(one, other, expected):
    """Better somewhere and nowhere worse; an unknown figure is worst."""
    paths = ("latency_s.p50", "peak_rss_bytes", "load_s")
    assert dominates(dict(zip(paths, one, strict=True)), dict(zip(paths, other, strict=True))) is expected
