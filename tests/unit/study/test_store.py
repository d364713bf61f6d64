"""measurements.jsonl is the truth: whole lines, whatever ends a run."""

import contextlib
import json

import pytest

from tuner.errors import HostError, UsageError
from tuner.records.config import Config
from tuner.study.store import StudyState, StudyStore


@pytest.fixture
def store(tmp_path):
    """Return an open, empty store."""
    found = StudyStore(tmp_path / "study")
    found.open()
    yield found
    found.close()


@pytest.fixture
def records(make_record):
    """Return three records."""
    return [make_record(number, Config(backend="fake", instances=number + 1), -0.1 * number) for number in range(3)]


def reopened(store):
    """Return what another process reads."""
    return StudyStore(store.directory).records()


def test_empty_study(store):
    """A new study has no records and belongs to nothing yet."""
    assert (store.records(), store.state()) == ([], None)


def test_records_come_back(store, records):
    """Records are read as they were appended, in order."""
    for record in records:
        store.append(record)
    assert reopened(store) == records


def test_a_record_is_one_line(store, records):
    """A line is a whole JSON document."""
    for record in records:
        store.append(record)
    lines = store.measurements.read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == [0, 1, 2]


def test_appended_is_on_disk_at_once(store, records):
    """After append returns, another process sees the line, without a close."""
    store.append(records[0])
    assert reopened(store) == records[:1]


def test_torn_last_line_is_passed_over(store, records):
    """A line that a crash cut short was never acknowledged."""
    store.append(records[0])
    with store.measurements.open("ab") as file:
        file.write(records[1].to_json().encode()[:50])
    assert reopened(store) == records[:1]


def test_append_after_a_torn_line(store, records):
    """The next run's line is whole although the last one was torn."""
    store.append(records[0])
    store.close()
    with store.measurements.open("ab") as file:
        file.write(b'{"number": 1, "purp')
    with contextlib.closing(StudyStore(store.directory)) as later:
        later.append(records[2])
    assert reopened(store) == [records[0], records[2]]


@pytest.mark.parametrize("line", [b"", b"\xff\xfe\n", b"[]\n", b"null\n", b'{"number": 1, "new_field": 2}\n'])
def test_foreign_lines_are_passed_over(store, records, line):
    """Lines that are no records of ours are left out."""
    store.measurements.write_bytes(line)
    store.append(records[0])
    assert reopened(store) == records[:1]


def test_measured_without_a_value_is_passed_over(store, records, make_record):
    """Nobody could be told of it; a failure has none, and the playoff's may have none."""
    whole = [records[0], make_record(3, records[1].config, None), records[2].model_copy(update={"purpose": "playoff"})]
    whole[2] = whole[2].model_copy(update={"value": None})
    for record in (*whole, records[1].model_copy(update={"value": None})):
        store.append(record)
    assert reopened(store) == whole


def test_file_that_cannot_be_read(store):
    """A directory in its place, or a file of somebody else's, is one line."""
    store.measurements.mkdir()
    with pytest.raises(HostError, match=r"measurements\.jsonl cannot be read \(Is a directory\): move it away"):
        store.records()


def test_full_disk_is_told(store, records, full_disk):
    """A line that does not fit ends in one error that names the file and the way out."""
    store.append(records[0])
    size, told = store.measurements.stat().st_size, r"measurements\.jsonl cannot be written \(.*\): free space"
    with full_disk(size + 20), pytest.raises(HostError, match=told):
        store.append(records[1])


def test_full_disk_cuts_the_line_off(store, records, full_disk):
    """What was measured before stays, and nothing of the torn line."""
    store.append(records[0])
    before = store.measurements.read_bytes()
    with full_disk(len(before) + 20), contextlib.suppress(HostError):
        store.append(records[1])
    assert store.measurements.read_bytes() == before


def test_nothing_of_a_torn_line_comes_later(store, records, full_disk):
    """Closing after a full disk writes nothing more."""
    store.append(records[0])
    before = store.measurements.read_bytes()
    with full_disk(len(before) + 20), contextlib.suppress(HostError):
        store.append(records[1])
    store.close()
    assert store.measurements.read_bytes() == before


def test_append_goes_on_after_a_full_disk(store, records, full_disk):
    """With space again, the next line is whole."""
    store.append(records[0])
    with full_disk(store.measurements.stat().st_size + 20), contextlib.suppress(HostError):
        store.append(records[1])
    store.append(records[2])
    assert reopened(store) == [records[0], records[2]]


def test_state_round_trip(store):
    """What a study belongs to is read as it was saved."""
    state = StudyState(key="k", parts={"model": "m"}, finished={"budget_s": 60.0, "trials": None})
    store.save_state(state)
    assert StudyStore(store.directory).state() == state


def test_full_disk_keeps_the_state(store, full_disk):
    """A state that does not fit ends in one error, and the old one stands."""
    store.save_state(StudyState(key="k", parts={}))
    with full_disk(8), pytest.raises(HostError, match=r"study\.json cannot be written \(.*\): free space"):
        store.save_state(StudyState(key="other", parts={}))
    assert StudyStore(store.directory).state().key == "k"


@pytest.mark.parametrize("text", ['{"schema": "tuner.study/2", "key": "k"}', "{", "[]", "", '{"key": "k"}'])
def test_foreign_state_is_refused(store, text):
    """A study of another schema, or none at all, is named and left alone."""
    store.state_file.write_text(text)
    with pytest.raises(UsageError, match=r"study\.json is not a tuner\.study/1 file.*--study"):
        store.state()


def test_two_runs_refuse_each_other(store):
    """A study in use is refused at once."""
    with store.in_use(), pytest.raises(HostError, match="in use by another run"), StudyStore(store.directory).in_use():
        pass


def test_study_is_free_afterwards(store):
    """A run that ended holds nothing."""
    with store.in_use():
        pass
    with StudyStore(store.directory).in_use():
        assert store.directory.is_dir()


def test_study_below_a_file(tmp_path):
    """A study directory that cannot be made names another way."""
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match=r"cannot be written \(.*\): name another with --study"):
        StudyStore(tmp_path / "file" / "study").open()
