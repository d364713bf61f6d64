"""Recorded traces: every process of every point with its block pairs, costs and failures; read, written, made a course.

A trace is gzipped JSON lines: a head, then one line a process. It carries the text of the space and the facts it was
resolved with, so that it can be played where neither exists any more.
"""

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, median, stdev
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
from pydantic import Field

from tuner.errors import UsageError
from tuner.records.base import Record, Scalar
from tuner.records.config import Config
from tuner.records.measurement import Failure
from tuner.replay.trace_course import Course
from tuner.space.loading import load_space
from tuner.space.resolved import ResolvedSpace

__all__ = ["Trace", "TraceHead", "TracedProcess", "read_trace", "write_trace"]

FIDELITY = "fidelity."
LEAST_SD = 0.01
PAIRS = 2
"""Block pairs of a recorded process."""


class TraceHead(Record):
    """What was recorded, and where.

    Attributes:
        space_files: Text of every file of the space, by name.
        facts: Facts of ``host``, ``model`` and ``workload`` that it was resolved with.
        space_sha256: Digest of the space's files.
        n_points: Points that the space lists on that host.
        versions: Of the libraries.
        machine: CPU model, count and class of noise, for people.
    """

    schema_: Literal["tuner.trace/1"] = Field(default="tuner.trace/1", alias="schema")
    name: str
    space_files: dict[str, str]
    facts: dict[str, dict[str, Scalar | tuple[Scalar, ...]]]
    backends: tuple[str, ...]
    dropped_steps: tuple[str, ...] = ()
    space_sha256: str
    n_points: int
    baseline: Config
    target: str
    versions: dict[str, str] = Field(default_factory=dict)
    machine: dict[str, Scalar] = Field(default_factory=dict)
    recorded_at: str = ""


class TracedProcess(Record):
    """One process of one point.

    Attributes:
        ratios: ln(candidate / anchor) of its block pairs; empty where it failed.
        value: Its ln ratio on the scale of the first anchor, None where it failed.
        call_s: Its p50.
        build_s: Seconds that its artifact took to build, whenever that was.
        open_s: Seconds from the start of the process to its first block.
        measure_s: Seconds of its blocks.
        violations: By constraint, above 0 misses.
    """

    config: Config
    ratios: tuple[float, ...] = ()
    value: float | None = None
    call_s: float | None = None
    anchor_id: str | None = None
    build_s: float = 0.0
    open_s: float = 0.0
    measure_s: float = 0.0
    violations: dict[str, float] = Field(default_factory=dict)
    failure: Failure | None = None


@dataclass(frozen=True)
class Trace:
    """A head and its processes in order of time."""

    head: TraceHead
    processes: tuple[TracedProcess, ...]

    @cached_property
    def by_config(self) -> dict[str, list[TracedProcess]]:
        """The processes of every config, by its digest."""
        found: dict[str, list[TracedProcess]] = {}
        for process in self.processes:
            found.setdefault(process.config.digest(), []).append(process)
        return found

    def configs(self) -> list[Config]:
        """Return the recorded configs, in the order of their first processes."""
        return [group[0].config for group in self.by_config.values()]

    def space(self, more: Mapping[str, str] | None = None) -> ResolvedSpace:
        """Return the space as it was, with `more` files (text by name) added."""
        with TemporaryDirectory() as name:
            files = []
            for file, text in {**self.head.space_files, **(more or {})}.items():
                files.append(Path(name) / Path(file).name)
                files[-1].write_text(text, encoding="utf-8")
            facts = self.head.facts
            return load_space(files).resolve(
                facts.get("host", {}),
                facts.get("model", {}),
                facts.get("workload", {}),
                backends=self.head.backends,
                dropped_steps=self.head.dropped_steps,
            )

    def course(self, configs: Iterable[Config] | None = None) -> Course:
        """Return what a search meets at `configs` (default: all recorded ones, in order).

        The truth of a point is the mean of its processes. Points within 10% of the best have five of them, so that the
        best is not merely the luckiest. The spread of those is that of processes and of the block pairs in each.
        """
        chosen = list(self.configs() if configs is None else configs)
        groups = [self.by_config[config.digest()] for config in chosen]
        artifacts = [config.artifact_digest() + config.backend for config in chosen]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(artifacts))}
        values = [[item.value for item in group if item.value is not None] for group in groups]
        failures = [next((item.failure for item in group if item.failure is not None), None) for group in groups]
        repeated = [group for group, found in zip(groups, values, strict=True) if len(found) > 1]
        between = _pooled([found for found in values if len(found) > 1], default=LEAST_SD)
        within = _pooled([i.ratios for group in repeated for i in group if len(i.ratios) > 1], default=LEAST_SD)
        spreads = tuple(stdev(item.ratios) for item in self.processes if len(item.ratios) > 1)
        return Course(
            name=self.head.name,
            truth=np.array([fmean(found) if found else np.nan for found in values]),
            is_faithful=np.array([not any(_misses(item) for item in group) for group in groups]),
            artifact=np.array([numbers[name] for name in artifacts]),
            build_s=np.array([max(item.build_s for item in group) for group in groups]),
            open_s=np.array([median(item.open_s for item in group) for group in groups]),
            measure_s=np.array([median(item.measure_s for item in group) for group in groups]),
            failure=tuple(
                f"{failure.kind}: {failure.message}" if failure is not None and not found else ""
                for failure, found in zip(failures, values, strict=True)
            ),
            process_sd=float(np.sqrt(max(LEAST_SD**2, between**2 - within**2 / PAIRS))),
            block_sd=float(np.median(spreads)) if spreads else LEAST_SD,
            block_sds=spreads,
        )


def read_trace(path: Path) -> Trace:
    """Read a trace; a line cut short at the end is left out.

    Raises:
        UsageError: Not a trace, or one of another schema.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read as a trace: {error}") from None
    if not lines or '"tuner.trace/1"' not in lines[0]:
        raise UsageError(f"{path}: is not a tuner.trace/1 file")
    head = TraceHead.from_json(lines[0], source=f"{path} line 1")
    whole = lines[1:] if _is_json(lines[-1]) else lines[1:-1]
    return Trace(head, tuple(TracedProcess.from_json(line, source=str(path)) for line in whole))


def write_trace(trace: Trace, path: Path) -> None:
    """Write a trace; the same trace gives the same bytes."""
    text = "\n".join([trace.head.to_json(), *(process.to_json() for process in trace.processes)]) + "\n"
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def _misses(process: TracedProcess) -> bool:
    return any(value > 0 for key, value in process.violations.items() if key.startswith(FIDELITY))


def _pooled(groups: Iterable[Iterable[float]], *, default: float) -> float:
    """Return the root mean square of the groups' standard deviations."""
    found = [stdev(group) ** 2 for group in map(list, groups)]
    return float(np.sqrt(fmean(found))) if found else default


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
