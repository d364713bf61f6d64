"""The Optuna side of a study: storage, trials as points, what is told; it chooses nothing itself."""

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

import optuna
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.storages import RDBStorage
from optuna.trial import Trial, TrialState
from sqlalchemy import event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError, SQLAlchemyError

from tuner.errors import HostError, UsageError
from tuner.space.domains import Domain
from tuner.space.parameters import Value
from tuner.space.resolved import ResolvedSpace
from tuner.space.walking import Point
from tuner.study.store import TrialRecord

LOCK_WAIT_S = 30.0
STUDY_NAME = "autotune"
OK = "ok"
FULL = "disk is full"
"""How SQLite's message ends then."""


def database_url(directory: Path, storage: str | None, number: int = 1) -> str:
    """Return the storage's URL: the user's, else the numbered SQLite file in the study."""
    if storage is not None:
        return storage
    file = directory / ("optuna.db" if number == 1 else f"optuna-{number}.db")
    return URL.create("sqlite", database=str(file)).render_as_string(hide_password=False)


def shown_url(url: str) -> str:
    """Return the URL without its password and without its options (which may hold one), for messages."""
    with contextlib.suppress(SQLAlchemyError, ValueError):
        return make_url(url).set(query={}).render_as_string(hide_password=True)
    return "that is no URL"


def check_storage(url: str, *, lock_wait_s: float = LOCK_WAIT_S) -> None:
    """Open a storage of the user's once, before anything is measured; it gets its tables if it has none.

    Raises:
        UsageError: Not a database URL, or of a kind that is not known.
        HostError: No driver for it is installed, or as `open_storage`.
    """
    try:
        open_storage(Path(), url, lock_wait_s=lock_wait_s)[1].engine.dispose()
    except ArgumentError as error:
        raise UsageError(f"--storage {shown_url(url)}: {error}; write for example sqlite:////data/tuning.db") from None
    except ValueError:  # its text may hold a part of the password
        raise UsageError("--storage: no database URL: its port cannot be read") from None
    except ImportError as error:
        raise HostError(
            f"--storage {shown_url(url)}: its driver is not installed ({error.__cause__ or error}): "
            "install it, or leave --storage out"
        ) from None


@contextlib.contextmanager
def storage_errors(url: str) -> Iterator[None]:
    """Turn database errors into one line; measured trials are in measurements.jsonl by then.

    Raises:
        HostError: The database cannot be opened, is locked for too long, or is of another schema.
    """
    try:
        yield
    except ArgumentError:  # says nothing of the database: the URL is wrong
        raise
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError, RuntimeError) as error:
        cause = " ".join(str(error.__cause__ or error).partition("[SQL: ")[0].split())[:200]
        remedy = (
            "free space and run again"
            if cause.endswith(FULL)
            else "put the study on a local disk, end the program that locks it, or remove the database (it is rebuilt)"
        )
        raise HostError(f"Optuna storage {shown_url(url)}: {cause}; no measurement is lost: {remedy}") from error


def open_storage(directory: Path, storage: str | None, *, lock_wait_s: float) -> tuple[str, RDBStorage]:
    """Open the storage and return its URL too.

    A database of ours that is damaged or of another schema is left as it is, and a new one beside it is taken: what
    it held stands in measurements.jsonl.

    Raises:
        HostError: As `storage_errors`; for a storage of the user's also if it is damaged or of another schema.
    """
    for number in count(1):
        url = database_url(directory, storage, number)
        options = {"connect_args": {"timeout": lock_wait_s}} if url.startswith("sqlite") else {}
        with storage_errors(url):
            try:
                opened = RDBStorage(url, engine_kwargs=options)
            except (RuntimeError, DatabaseError) as error:
                if storage is not None or isinstance(error, OperationalError):
                    raise
                continue
            if storage is None:
                write_without_waiting(opened)
            return url, opened
    raise AssertionError("count() has no end")


def write_without_waiting(storage: RDBStorage) -> None:
    """Let SQLite leave it to the system when data reach the disk: twenty waits a trial otherwise.

    A crash of ours loses nothing by it; after one of the system the database may be damaged, and is rebuilt.
    """

    def relax(connection: DBAPIConnection, _record: object) -> None:
        connection.cursor().execute("PRAGMA synchronous=OFF")

    event.listen(storage.engine, "connect", relax)
    storage.engine.dispose()  # what is open already waits


class TrialBook:
    """Asks and tells one Optuna study; every configuration is a path of suggestions.

    Args:
        directory: Of the study.
        storage: The user's storage URL, None for SQLite in the study.
        space: Where points come from.
        sampler: Optuna's sampler.
        constraints: Keys that every told trial carries.
        name: Of the Optuna study; a storage of the user's may hold many.
        lock_wait_s: How long a locked database is waited for.
    """

    def __init__(
        self,
        directory: Path,
        storage: str | None,
        space: ResolvedSpace,
        *,
        sampler: BaseSampler,
        constraints: tuple[str, ...],
        name: str = STUDY_NAME,
        lock_wait_s: float = LOCK_WAIT_S,
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.space = space
        self.constraints = constraints
        self.url, self.storage = open_storage(directory, storage, lock_wait_s=lock_wait_s)
        with storage_errors(self.url):
            self.study = optuna.create_study(
                storage=self.storage, study_name=name, sampler=sampler, direction="minimize", load_if_exists=True
            )
            for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                self.study.tell(trial.number, state=TrialState.FAIL)

    def close(self) -> None:
        """Let go of the database; what was told is in it."""
        with contextlib.suppress(SQLAlchemyError):
            self.storage.remove_session()
            self.storage.engine.dispose()

    def rebuild(self, records: list[TrialRecord]) -> int:
        """Tell what measurements.jsonl has and the database lacks; return how many trials that were."""
        with storage_errors(self.url):
            known = {
                trial.user_attrs.get("number")
                for trial in self.study.get_trials(deepcopy=False)
                if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)
            }
        missing = [
            record for record in records if record.number not in known and record.purpose in ("screen", "search")
        ]
        told = 0
        for record in missing:
            point = self.space.to_point(record.config)
            if point is not None:
                trial, _ = self.ask_for(point)
                self.tell(trial, record)
                told += 1
        return told

    def ask(self) -> tuple[Trial, Point]:
        """Let the sampler suggest a point, which may be a repeat."""
        with storage_errors(self.url):
            trial = self.study.ask()
            return trial, self.space.suggest(lambda name, domain: suggest(trial, name, domain))

    def ask_for(self, point: Mapping[str, Value]) -> tuple[Trial, Point]:
        """Open a trial for a point of ours."""
        named: dict[str, Value] = {}

        def choose(name: str, domain: Domain) -> Value:
            value = point.get(name.rpartition("/")[2], domain.values[0])
            named[name] = value
            return value

        self.space.suggest(choose)
        with storage_errors(self.url):
            self.study.enqueue_trial(named)
            return self.ask()

    def tell(self, trial: Trial, record: TrialRecord) -> None:
        """Tell a trial's outcome by the protocol's rules; every constraint key is set on every trial."""
        failed = record.state == "failed"
        with storage_errors(self.url):
            trial.set_user_attr("number", record.number)
            trial.set_user_attr("state", record.state)
            for key in self.constraints:
                trial.set_constraint(key, 1.0 if failed else record.violations.get(key, 0.0))
            trial.set_constraint(OK, 1.0 if failed else 0.0)
            if failed:
                self.study.tell(trial, state=TrialState.PRUNED)
            else:
                assert record.value is not None
                self.study.tell(trial, record.value)

    def refuse(self, trial: Trial) -> None:
        """Answer a suggestion that breaks a rule, as a failure that was not run."""
        with storage_errors(self.url):
            for key in (*self.constraints, OK):
                trial.set_constraint(key, 1.0)
            self.study.tell(trial, state=TrialState.PRUNED)


def suggest(trial: Trial, name: str, domain: Domain) -> Value:
    """Let an Optuna trial choose from a domain; grids of reals and choices are categorical."""
    if isinstance(domain.values, range) and len(domain.values) > 1:
        values = domain.values
        number: int = trial.suggest_int(
            name, values[0], values[-1], step=1 if domain.log else values.step, log=domain.log
        )
        return number
    value: Value = trial.suggest_categorical(name, list(domain.values))
    return value


def sampler_of(name: str, seed: int, *, n_seeds: int) -> BaseSampler:
    """Return Optuna's sampler for a name of ours; all but ``tpe`` choose every point by themselves."""
    if name != "tpe":
        return RandomSampler(seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", optuna.exceptions.ExperimentalWarning
        )  # `group` is what conditional spaces need
        return TPESampler(seed=seed, multivariate=True, group=True, n_startup_trials=max(5, n_seeds))
