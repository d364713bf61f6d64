"""What Optuna is told, and what its storage may do wrong."""

import sqlite3
import threading
from pathlib import Path

import optuna
import psutil
import pytest
from optuna.trial import TrialState
from sqlalchemy import event

from tuner.errors import HostError, UsageError
from tuner.study.optuna_study import LOCK_WAIT_S, check_storage, database_url, shown_url


def told(book):
    """Return Optuna's finished trials as (state, value, constraints)."""
    return [(trial.state, trial.value, dict(trial.constraints)) for trial in book.study.get_trials()]


def ask_and_tell(book, record):
    """Open a trial for a record's point and tell it."""
    trial, _ = book.ask_for(book.space.to_point(record.config))
    book.tell(trial, record)


@pytest.fixture
def config(space):
    """Return a config of the space."""
    return space.to_config(space.enumerate()[0])


def test_measured_is_complete(space, config, make_book, make_record):
    """A measured trial is COMPLETE with every constraint key, 0 where nothing is known."""
    book = make_book(space, storage="sqlite://")
    ask_and_tell(book, make_record(1, config, -0.5))
    assert told(book) == [(TrialState.COMPLETE, -0.5, {"fidelity.rel_error_max<=0.02": 0.0, "ok": 0.0})]


def test_infeasible_is_complete(space, config, make_book, make_record):
    """A broken constraint is a figure, not a failure."""
    book = make_book(space, storage="sqlite://")
    ask_and_tell(book, make_record(1, config, -0.5, violations={"fidelity.rel_error_max<=0.02": 0.3}))
    assert told(book) == [(TrialState.COMPLETE, -0.5, {"fidelity.rel_error_max<=0.02": 0.3, "ok": 0.0})]


def test_failed_is_pruned(space, config, make_book, make_record):
    """A failure is PRUNED with every constraint key set to 1."""
    book = make_book(space, storage="sqlite://")
    ask_and_tell(book, make_record(1, config, None))
    assert told(book) == [(TrialState.PRUNED, None, {"fidelity.rel_error_max<=0.02": 1.0, "ok": 1.0})]


def test_asked_point_is_the_point_given(space, make_book):
    """A trial opened for a point of ours holds that point."""
    point = space.enumerate()[3]
    assert make_book(space, storage="sqlite://").ask_for(point)[1] == point


def test_running_trials_of_a_dead_run_fail(space, make_book):
    """A trial that was running when its tuner died is FAIL after the resume."""
    make_book(space).ask()
    states = [trial.state for trial in make_book(space).study.get_trials()]
    assert states == [TrialState.FAIL]


def test_rebuild_from_records(space, make_book, make_record):
    """A removed database is rebuilt from measurements.jsonl."""
    records = [make_record(i, space.to_config(point), -0.1 * i) for i, point in enumerate(space.enumerate()[:4])]
    assert make_book(space, storage="sqlite://").rebuild(records) == 4


def test_rebuild_tells_each_record_once(space, make_book, make_record):
    """What the database has is not told again."""
    records = [make_record(i, space.to_config(point), -0.1 * i) for i, point in enumerate(space.enumerate()[:2])]
    make_book(space).rebuild(records)
    assert make_book(space).rebuild(records) == 0


def test_rebuild_leaves_out_what_is_no_trial(space, config, make_book, make_record):
    """Baselines and playoffs are no points of the search."""
    records = [make_record(0, config, 0.0, "baseline"), make_record(1, config, -0.5, "playoff")]
    assert make_book(space, storage="sqlite://").rebuild(records) == 0


def test_rebuild_leaves_out_points_of_another_space(space, make_space, make_book, make_record):
    """A record that is no point of today's space is passed over (case C55)."""
    points = make_space(alpha=9).enumerate()
    config = make_space(alpha=9).to_config(points[-1])
    assert make_book(space, storage="sqlite://").rebuild([make_record(1, config, -0.1)]) == 0


def test_locked_for_ever(space, make_book, tmp_path):
    """A database that another program locks ends in one line that names the way out (case C51)."""
    make_book(space)
    with sqlite3.connect(tmp_path / "study" / "optuna.db", isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(HostError, match=r"locked.*no measurement is lost.*end the program that locks it"):
            make_book(space, lock_wait_s=0.05)
        other.execute("ROLLBACK")
    other.close()


def test_locked_for_a_while(space, config, make_book, make_record, tmp_path):
    """A lock that goes away in time, as that of a backup of 20 s, costs its time and nothing else."""
    assert LOCK_WAIT_S > 20.0
    book = make_book(space)
    trial, _ = book.ask_for(space.to_point(config))
    other = sqlite3.connect(tmp_path / "study" / "optuna.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    release = threading.Timer(0.3, other.execute, ("ROLLBACK",))
    release.start()
    book.tell(trial, make_record(1, config, -0.5))
    release.join()
    other.close()
    assert [state for state, *_ in told(book)] == [TrialState.COMPLETE]


def test_closed_book(space, config, make_book, make_record, tmp_path):
    """Nothing of the database stays open, and what was told is in it."""

    def is_open():
        return any(Path(file.path).parent == tmp_path / "study" for file in psutil.Process().open_files())

    book = make_book(space)
    trial, _ = book.ask_for(space.to_point(config))
    book.tell(trial, make_record(1, config, -0.5))
    was_open = is_open()
    book.close()
    assert (was_open, is_open()) == (True, False)
    assert [state for state, *_ in told(make_book(space))] == [TrialState.COMPLETE]


def test_locked_while_telling(space, config, make_book, make_record, tmp_path):
    """A lock that comes later is the same one line."""
    book = make_book(space, lock_wait_s=0.05)
    trial, _ = book.ask_for(space.to_point(config))
    with sqlite3.connect(tmp_path / "study" / "optuna.db", isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(HostError, match="locked"):
            book.tell(trial, make_record(1, config))
        other.execute("ROLLBACK")
    other.close()


def test_full_disk_while_telling(space, config, make_book, make_record):
    """The one line says what to do, and nothing of the statement."""
    book = make_book(space)
    book.storage.engine.dispose()
    event.listen(book.storage.engine, "connect", lambda opened, _: opened.execute("PRAGMA max_page_count=1"))
    records = (make_record(number, config, -0.5) for number in range(1000))
    with pytest.raises(HostError, match=r"disk is full; no measurement is lost: free space and run again$"):
        book.rebuild(list(records))


def test_damaged_database_is_left_alone(space, config, make_book, make_record, tmp_path):
    """A damaged database stays as it is; a new one beside it is told what was measured (case C51)."""
    content = b"SQLite format 3\x00" + b"\xff" * 4096
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "optuna.db").write_bytes(content)
    told_again = make_book(space).rebuild([make_record(1, config, -0.1)])
    assert (told_again, (tmp_path / "study" / "optuna.db").read_bytes()) == (1, content)


def test_database_of_another_schema_is_left_alone(space, config, make_book, make_record, tmp_path):
    """A database of another version of Optuna stays; old results are told to a new one (case C55)."""
    make_book(space).rebuild([make_record(1, config, -0.1)])
    with sqlite3.connect(tmp_path / "study" / "optuna.db") as database:
        database.execute("UPDATE alembic_version SET version_num = 'v99.0.0.a'")
    database.close()
    assert make_book(space).rebuild([make_record(1, config, -0.1)]) == 1


def test_a_new_database_is_found_again(space, config, make_book, make_record, tmp_path):
    """The database beside a damaged one is the one that later runs use."""
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "optuna.db").write_bytes(b"not a database")
    make_book(space).rebuild([make_record(1, config, -0.1)])
    assert make_book(space).rebuild([make_record(1, config, -0.1)]) == 0


def test_damaged_storage_of_the_user(space, make_book, tmp_path):
    """A --storage that is damaged is refused: where the user's database is, is not ours to choose."""
    (tmp_path / "mine.db").write_bytes(b"not a database")
    with pytest.raises(HostError, match=r"mine\.db: .*not a database.*no measurement is lost"):
        make_book(space, storage=f"sqlite:///{tmp_path / 'mine.db'}")


def test_studies_share_a_storage_of_the_user(space, config, make_book, make_record, tmp_path):
    """Studies of different names in one storage do not see each other's trials."""
    url = f"sqlite:///{tmp_path / 'mine.db'}"
    make_book(space, storage=url, name="one").rebuild([make_record(1, config, -0.1)])
    assert make_book(space, storage=url, name="two").study.get_trials() == []


def test_password_is_not_shown():
    """A password in a storage URL never reaches a message."""
    assert "secret" not in shown_url("postgresql://me:secret@host/db")
    assert "secret" not in shown_url("postgresql://host/db?password=secret")


@pytest.mark.parametrize(
    ("url", "kind", "message"),
    [
        ("nonsense", UsageError, r"--storage that is no URL: Could not parse"),
        ("", UsageError, r"--storage that is no URL: Could not parse"),
        ("redis://me:secret@host/1", UsageError, r"redis://me:\*\*\*@host/1: Can't load plugin"),
        ("postgresql://me:secret@host:secret/db", UsageError, r"its port cannot be read"),
        ("postgresql://me:secret@host/db", HostError, r"//me:\*\*\*@host/db: its driver is not installed .No module"),
        ("sqlite:////there-is-none/secret.db", HostError, r"unable to open database file"),
    ],
)
def test_storage_that_cannot_be_used(url, kind, message):
    """What is wrong with --storage is said before anything is measured, and no password with it."""
    with pytest.raises(kind, match=message) as caught:
        check_storage(url)
    assert ":secret" not in str(caught.value)


def test_storage_that_can_be_used(tmp_path):
    """A new database file is made, with its tables; checking it again changes nothing."""
    url = f"sqlite:///{tmp_path / 'mine.db'}"
    check_storage(url)
    check_storage(url)
    with sqlite3.connect(tmp_path / "mine.db") as database:
        assert database.execute("SELECT count(*) FROM studies").fetchone() == (0,)


def test_default_storage_is_in_the_study(tmp_path):
    """Without --storage, SQLite in the study; odd characters in its path are no part of a URL."""
    directory = tmp_path / "a b?c#d%e"
    directory.mkdir()
    url = database_url(directory, None)
    storage = optuna.storages.RDBStorage(url)
    storage.engine.dispose()
    assert (directory / "optuna.db").is_file()
