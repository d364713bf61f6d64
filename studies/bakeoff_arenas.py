"""Courses for the bake-off with their spaces and tables: drawn ones, recorded ones, recorded ones made wider."""

from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from tuner.replay.trace import Trace, read_trace
from tuner.replay.trace_course import Course
from tuner.replay.trace_landscape import Relief, draw_course
from tuner.space.loading import load_space
from tuner.space.resolved import ResolvedSpace
from tuner.study.encoding import PointTable

HERE = Path(__file__).parent
RELIEFS = (
    Relief(),
    Relief(setting=0.08, pair=0.035),
    Relief(setting=0.08, inert=0.4, pair=0.05, rest=0.015),
)
"""Smooth, with interactions, rugged: one after another."""


@dataclass(frozen=True)
class Arena:
    """A space, its table and one course."""

    space: ResolvedSpace
    table: PointTable
    course: Course

    def seeds(self) -> list[int]:
        """Return the rows that screening starts with."""
        return [row for row in map(self.table.row_of, self.space.artifact_points()) if row is not None]


@cache
def drawn_space(cpus: int) -> tuple[ResolvedSpace, PointTable]:
    """Return the made-up space on so many CPUs."""
    files = sorted((HERE / "spaces").glob("*.toml"))
    space = load_space(files).resolve({"cpu_budget": cpus, "physical_cores": cpus}, {}, {})
    return space, PointTable(space, space.enumerate())


@cache
def arena(course: int | str, cpus: int = 4) -> Arena:
    """Return a course: a number draws one, a name is a recorded trace, ``wide NAME`` that with made-up minor knobs."""
    if isinstance(course, str):
        trace = read_trace(HERE / "traces" / f"{course.removeprefix('wide ')}.jsonl.gz")
        return widened(trace) if course.startswith("wide ") else recorded(trace)
    number = course
    space, table = drawn_space(cpus)
    relief = RELIEFS[number % len(RELIEFS)]
    return Arena(space, table, draw_course(space, table.points, seed=number, relief=relief, n_cores=cpus))


def recorded(trace: Trace) -> Arena:
    """Return the course of a trace: the recorded points alone."""
    space = trace.space()
    known = [(config, space.to_point(config)) for config in trace.configs()]
    table = PointTable(space, [point for _, point in known if point is not None])
    return Arena(space, table, trace.course([config for config, point in known if point is not None]))


def widened(trace: Trace, n_points: int = 5000) -> Arena:
    """Return the recorded points times made-up switches, half of them without effect: at least `n_points`."""
    base = recorded(trace)
    n_knobs = max(1, int(np.ceil(np.log2(n_points / len(base.table)))))
    knobs = "\n".join(
        f'[process.env.MADE_UP_{knob}]\nkind = "choice"\nvalues = ["0", "1"]\n' for knob in range(n_knobs)
    )
    space = trace.space({"made_up.toml": f'schema = "tuner.space/1"\n{knobs}'})
    rng = np.random.default_rng(len(base.table))
    effects = rng.normal(0, 0.03, (n_knobs, 2)) * (np.arange(n_knobs) % 2)[:, None]
    points, origins, extra = [], [], []
    for row, point in enumerate(base.table.points):
        for values in product((0, 1), repeat=n_knobs):
            points.append(point | {f"process.env.MADE_UP_{knob}": str(value) for knob, value in enumerate(values)})
            origins.append(row)
            extra.append(sum(effects[knob, value] for knob, value in enumerate(values)))
    course, rows = base.course, np.array(origins)
    wide = replace(
        course,
        name=f"wide {course.name}",
        truth=course.truth[rows] + np.array(extra),
        is_faithful=course.is_faithful[rows],
        artifact=course.artifact[rows],
        build_s=course.build_s[rows],
        open_s=course.open_s[rows],
        measure_s=course.measure_s[rows],
        failure=tuple(course.failure[row] for row in origins),
    )
    return Arena(space, PointTable(space, points), wide)
