"""The study's directory: measurements.jsonl is the truth, study.json says what it belongs to; it knows no sampler."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Literal

from pydantic import Field

from tuner.artifacts.store import write_atomically
from tuner.errors import HostError, UsageError
from tuner.records.base import Record
from tuner.records.config import Config
from tuner.records.measurement import Block, Failure, Measurement

STUDY_SCHEMA = "tuner.study/1"
Purpose = Literal["baseline", "screen", "search", "race", "playoff"]
SEARCHED = ("screen", "search")
"""What Optuna and the search are told of."""


class TrialRecord(Record):
    """One line of measurements.jsonl.

    Attributes:
        state: ``measured`` (also if it breaks a constraint), ``pruned`` (stopped early with an estimate), ``failed``.
        value: ln(candidate/anchor) of the target, lower is better; None for failures.
        violations: By constraint key, ≤ 0 holds.
        purpose: Why it was run: ``baseline``, ``screen``, ``search``, ``race`` or ``playoff``.
        pair_sd: Standard deviation of the block pairs' log-ratios.
    """

    number: int
    purpose: Purpose
    config: Config
    state: Literal["measured", "pruned", "failed"]
    value: float | None = None
    violations: dict[str, float] = Field(default_factory=dict)
    measurement: Measurement | None = None
    failure: Failure | None = None
    anchor_id: str | None = None
    numerics_key: str | None = None
    pair_sd: float | None = None
    candidate_blocks: tuple[Block, ...] = ()
    anchor_blocks: tuple[Block, ...] = ()
    build_s: float = 0.0
    measure_s: float = 0.0
    wall_s: float = 0.0
    started_at: str = ""


class StudyState(Record):
    """What a study belongs to and how far it is.

    Attributes:
        key: Digest of model, workload, objective, space, host and library versions.
        parts: The digests that make the key, to say what differs.
        finished: The run that finished it, None while unfinished.
    """

    schema_: Literal["tuner.study/1"] = Field(default="tuner.study/1", alias="schema")
    key: str
    parts: dict[str, str]
    prepared_key: str | None = None
    finished: dict[str, float | int | str | None] | None = None


class StudyStore:
    """Reads and writes one study directory; a lock on it is held by `in_use`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.measurements = directory / "measurements.jsonl"
        self.state_file = directory / "study.json"
        self._file: FileIO | None = None

    def open(self) -> None:
        """Make the directory.

        Raises:
            HostError: It cannot be written; the cause and another place are named.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            probe = self.directory / f".writable-{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise HostError(
                f"the study directory {self.directory} cannot be written ({error.strerror}): name another with --study"
            ) from error

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Hold the study; the kernel gives it back if we die.

        Raises:
            HostError: Another run holds it.
        """
        with (self.directory / ".lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise HostError(
                    f"the study {self.directory} is in use by another run: wait for it or name another with --study"
                ) from None
            yield

    def state(self) -> StudyState | None:
        """Return what the study belongs to, None for a new one.

        Raises:
            UsageError: study.json is damaged or of another schema.
        """
        try:
            text = self.state_file.read_bytes()
        except FileNotFoundError:
            return None
        try:
            schema = json.loads(text).get("schema")
        except (ValueError, AttributeError):
            schema = None
        if schema != STUDY_SCHEMA:
            raise UsageError(
                f"{self.state_file} is not a {STUDY_SCHEMA} file: move it away or name another with --study"
            )
        return StudyState.from_json(text, source=str(self.state_file))

    def save_state(self, state: StudyState) -> None:
        """Write study.json atomically."""
        self.save(self.state_file.name, state.to_json(indent=1).encode())

    def save(self, name: str, data: bytes) -> None:
        """Write a file of the study atomically.

        Raises:
            HostError: The disk is full or fails; an existing file is as it was.
        """
        try:
            write_atomically(self.directory / name, data)
        except OSError as error:
            raise HostError(
                f"{self.directory / name} cannot be written ({error.strerror}): free space and run again"
            ) from error

    def append(self, record: TrialRecord) -> None:
        """Append one line, durable before this returns.

        Raises:
            HostError: The disk is full; the torn line is cut off again, what was measured before stays.
        """
        if self._file is None:
            self._file = self.measurements.open("ab", buffering=0)
            self._mend_tail()
        start = self._file.seek(0, os.SEEK_END)
        line = memoryview(record.to_json().encode() + b"\n")
        try:
            while line:
                line = line[self._file.write(line) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                os.truncate(self.measurements, start)
            raise HostError(
                f"{self.measurements} cannot be written ({error.strerror}): free space and run again"
            ) from error

    def _mend_tail(self) -> None:
        """End a line that a crash cut short, so that the next one is whole."""
        assert self._file is not None
        size = self._file.seek(0, os.SEEK_END)
        if size:
            with self.measurements.open("rb") as file:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    self._file.write(b"\n")

    def records(self) -> list[TrialRecord]:
        """Return all whole lines; a torn or foreign line is passed over (it was never acknowledged).

        So is a trial of the search that is said to have succeeded and has no value: nothing can be told of it.

        Raises:
            HostError: The file cannot be read.
        """
        found: list[TrialRecord] = []
        try:
            lines = self.measurements.read_bytes().splitlines()
        except FileNotFoundError:
            return found
        except OSError as error:
            raise HostError(
                f"{self.measurements} cannot be read ({error.strerror}): move it away or name another with --study"
            ) from error
        for line in lines:
            with contextlib.suppress(UsageError):
                record = TrialRecord.from_json(line, source=str(self.measurements))
                if record.value is not None or record.state == "failed" or record.purpose not in SEARCHED:
                    found.append(record)
        return found

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
