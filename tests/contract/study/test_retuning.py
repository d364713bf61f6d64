"""Retuning: the request of a profile again, what changed, and where the search starts; nothing is measured."""

import dataclasses

import numpy as np
import pytest

from tuner.records.config import Config, ProcessSettings, StepSettings
from tuner.records.measurement import Failure
from tuner.replay.trace_course import Player
from tuner.replay.trace_landscape import draw_course
from tuner.study.encoding import PointTable
from tuner.study.optuna_study import TrialBook, sampler_of
from tuner.study.searching import BUILD_S
from tuner.study.store import TrialRecord
from tuner.study.suggesting import Suggester
from tuner.tuning.earlier import Earlier, good_configs
from tuner.tuning.remembering import remembered, shown_command
from tuner.tuning.request import TuneRequest
from tuner.tuning.retuning import changed, request_of
from tuner.tuning.warming import nearest_point, screened_cells, warm_rows

PROCESS = """
[process.placement.policy]
kind = "choice"
values = ["none", "spread"]

[process.env.OMP_WAIT_POLICY]
kind = "choice"
values = ["", "passive"]
"""


@pytest.fixture(scope="module")
def space(make_engine_space):
    """Return a made-up space of two engines, each with two artifact chains, two precisions and process settings."""
    return make_engine_space(PROCESS)


MOST = 30
"""Trials that a search may make, as a budget would have it."""


class Search:
    """A search in virtual time on a drawn course, from a cold start or from an older result, to its end or a goal."""

    def __init__(self, space, directory, course, *, earlier=None, built=(), goal=-np.inf):
        self.course = course
        self.points = space.enumerate()
        rows = {space.to_config(point).digest(): row for row, point in enumerate(self.points)}
        self.player = Player(course, seed=3)
        self.player.built |= set(built)
        book = TrialBook(
            directory, "sqlite://", space, sampler=sampler_of("auto", 0, n_seeds=6), constraints=("fidelity.x",)
        )
        suggester = Suggester(
            book,
            space,
            seed=3,
            records=[],
            build_s=lambda config: 0.0 if self.player.is_built(rows[config.digest()]) else BUILD_S,
        )
        if earlier is not None:
            suggester.begin_with(warm_rows(suggester.table, earlier), screened_cells(suggester.table, earlier))
        self.played, self.records = [], []
        while len(self.played) < MOST and suggester.should_stop() is None:
            found = suggester.next()
            played = self.player.play(rows[found.config.digest()])
            self.records.append(self.record(found, played))
            suggester.note(self.records[-1])
            self.played.append(played)
            if self.is_there(played.point, goal):
                break
        book.close()

    def record(self, found, played):
        """Return a played trial as a study keeps it."""
        is_measured = played.value is not None
        return TrialRecord(
            number=len(self.played),
            purpose=found.purpose,
            config=found.config,
            state="measured" if is_measured else "failed",
            value=played.value,
            violations={"fidelity.x": -1.0 if played.is_faithful else 1.0} if is_measured else {},
            failure=None if is_measured else Failure(stage="load", kind="error", message=played.failure),
            pair_sd=played.pair_sd if is_measured else None,
            build_s=played.build_s,
            wall_s=played.seconds,
        )

    @property
    def best(self):
        """The row that would go to the playoff."""
        good = [(played.value, played.point) for played in self.played if played.value is not None]
        return min((value, row) for value, row in good if self.course.is_faithful[row])[1]

    def is_there(self, row, goal):
        """Say whether a row is faithful and its true value at most `goal`."""
        return bool(self.course.is_faithful[row] and self.course.truth[row] <= goal)


def with_another_library(course, space, seed):
    """Return the course after an update of every engine's library: another drawing has a fifth of the effect."""
    other = draw_course(space, space.enumerate(), seed=seed + 1000).truth
    return dataclasses.replace(course, truth=course.truth + 0.2 * np.where(np.isfinite(other), other, 0.0))


QUICK = (0, 4, 6, 11)
"""Draws that are always played; in the last two another point becomes the best, in 11 one of another family."""


@pytest.mark.parametrize(
    "seed", [seed if seed in QUICK else pytest.param(seed, marks=pytest.mark.slow) for seed in range(12)]
)
def test_retune_reaches_the_cold_result_sooner(space, tmp_path, seed):
    """After a library changed, at most 40% of the cold search's evaluations give its result (within 1%)."""
    before = draw_course(space, space.enumerate(), seed=seed)
    old = Search(space, tmp_path, before)
    after = with_another_library(before, space, seed)
    cold = Search(space, tmp_path, after)
    earlier = Earlier([space.to_config(old.points[old.best])], old.records, is_alike=True)
    goal = after.truth[cold.best] + 0.01
    warm = Search(space, tmp_path, after, earlier=earlier, built=old.player.built, goal=goal)
    assert warm.is_there(warm.played[-1].point, goal)
    assert len(warm.played) <= 0.4 * len(cold.played)


@pytest.fixture
def table(space):
    """Return the table of all points."""
    return PointTable(space, space.enumerate())


def of_points(space, valued, **fields):
    """Return an older result of points and their values."""
    records = [
        TrialRecord(
            number=number, purpose="search", config=space.to_config(point), state="measured", value=value, pair_sd=0.005
        )
        for number, (point, value) in enumerate(valued)
    ]
    best = min(records, key=lambda record: record.value).config
    return Earlier([best], records, **fields)


def in_family(space, backend, **values):
    """Return a point of float32, by default with four threads."""
    return space.complete({"backend": backend, "artifact.chain": "fp32", **values})


def test_leading_families_take_turns(space, table):
    """Rivals that were near come right after the old best, families that were far do not come at all."""
    alpha, beta = in_family(space, "alpha"), in_family(space, "beta")
    far = space.complete({"backend": "alpha", "artifact.chain": "int8"})
    rows = warm_rows(table, of_points(space, [(alpha, -0.5), (beta, -0.45), (far, 0.4)]))
    assert [table.points[row] for row in rows[:2]] == [alpha, beta]
    assert {table.points[row]["artifact.chain"] for row in rows} == {"fp32"}
    assert [table.points[row]["backend"] for row in rows[:6]] == ["alpha", "beta"] * 3


def test_within_a_family_the_old_order_counts(space, table):
    """Points with the values that were slow in the old trials are not among the first."""
    fast = in_family(space, "alpha", **{"session.threads": 4})
    slow = [in_family(space, "alpha", **{"session.threads": threads}) for threads in (1, 2)]
    rows = warm_rows(table, of_points(space, [(fast, -0.5), *((point, 0.9) for point in slow)]))
    assert not {1, 2} & {table.points[row]["session.threads"] for row in rows}


def test_old_figures_only_order(space, table):
    """Half the time in all old trials gives the same rows: nothing but the differences is looked at."""
    valued = [(in_family(space, name), value) for name, value in (("alpha", -0.5), ("beta", -0.45))]
    halved = [(point, value - np.log(2)) for point, value in valued]
    assert warm_rows(table, of_points(space, valued)) == warm_rows(table, of_points(space, halved))


def test_screening_is_spared_where_model_and_host_are_the_same(space, table):
    """Families with an old trial are left to the search; after a change of host they are screened again."""
    valued = [(in_family(space, "alpha"), -0.5), (in_family(space, "beta"), 0.9)]
    alike = screened_cells(table, of_points(space, valued, is_alike=True))
    assert alike == {int(table.cells[table.row_of(point)]) for point, _ in valued}
    assert screened_cells(table, of_points(space, valued)) == set()


def test_without_old_trials_neighbours_follow(space, table):
    """The first point is the old best; the next ones differ from it in one value, same artifact before others."""
    best = space.enumerate()[40]
    points = [table.points[row] for row in warm_rows(table, Earlier([space.to_config(best)]))]
    digests = [space.to_config(point).artifact_digest() for point in points]
    assert points[0] == best
    assert all(point in space.neighbours(best) for point in points[1:])
    assert digests == sorted(digests, key=lambda digest: digest != digests[0])


def test_nothing_to_start_from(table):
    """Without an older result, and with one of an engine that is gone, screening starts as always."""
    assert warm_rows(table, Earlier()) == []
    assert warm_rows(table, Earlier([Config(backend="tensorrt")])) == []


def test_config_of_another_host(space):
    """A config that is no point here becomes the nearest one: values that exist stay."""
    old = Config(
        backend="beta",
        artifact=(StepSettings(step="export"),),
        session={"precision": "bfloat16", "threads": 64, "spin": False, "gone": 1},
        process=ProcessSettings(env={"OMP_WAIT_POLICY": "passive"}),
    )
    point = nearest_point(space, old)
    expected = {"backend": "beta", "session.precision": "bfloat16", "session.spin": False}
    assert space.violations(point) == ()
    assert expected.items() <= point.items()


def trial(number, value, *, threads=1, step=None, **fields):
    """Return the record of a trial."""
    artifact = (StepSettings(step=step),) if step else ()
    config = Config(backend="onnxruntime", artifact=artifact, session={"threads": threads})
    return TrialRecord(number=number, purpose="search", config=config, state="measured", value=value, **fields)


def test_one_config_an_artifact():
    """Of an older study the best of every artifact is kept, best first; what broke a limit is not."""
    records = [
        trial(0, -0.1, step="a"),
        trial(1, -0.3),
        trial(2, -0.2, threads=2),
        trial(3, -0.9, step="b", violations={"fidelity.cosine_min>=0.99": 0.1}),
    ]
    assert [config.chain() for config in good_configs(records)] == ["source", "a"]


@pytest.fixture
def request_():
    """Return a request with options of several kinds."""
    return TuneRequest(
        model="m",
        target="p99",
        at_most=("load_s=5s",),
        lengths=(128, 512),
        fix=("session.threads=1",),
        trust_remote_code=True,
        command=("autotune", "--model", "m"),
    )


def test_request_comes_back(profile, request_, tmp_path):
    """A profile holds what it takes to make its request again, all but the trust."""
    made = profile(request=remembered(request_), command=request_.command)
    assert request_of(made, tmp_path) == request_.model_copy(update={"trust_remote_code": False})


def test_defaults_are_not_remembered():
    """Another version may have other defaults; they are its own."""
    assert remembered(TuneRequest(model="m")) == {"model": "m"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mysql://db/x?user=me&password=s3cret&charset=utf8", "mysql://db/x?user=me&password=***&charset=utf8"),
        ("postgresql://db/x?sslpassword=s3cret", "postgresql://db/x?sslpassword=***"),
        ("postgresql://me:s3/cret@db/x", "postgresql://me:***@db/x"),
    ],
)
def test_odd_passwords_are_not_remembered(url, shown):
    """Nor one among the options of a URL, nor one with a slash in it."""
    assert remembered(TuneRequest(model="m", storage=url)) == {"model": "m"}
    assert shown_command((f"--storage={url}",)) == (f"--storage={shown}",)


def test_passwords_are_not_remembered():
    """A storage with a password stands in no profile; one without does."""
    secret = TuneRequest(model="m", storage="postgresql://me:s3cret@db/x")
    assert remembered(secret) == {"model": "m"}
    assert remembered(TuneRequest(model="m", storage="sqlite:///x.db"))["storage"] == "sqlite:///x.db"
    assert shown_command(("--storage", "postgresql://me:s3cret@db/x")) == ("--storage", "postgresql://me:***@db/x")


def test_profile_without_a_request(profile, tmp_path):
    """Of an older profile the request is put together from its fields."""
    objective = {
        "target": "latency_s.p99",
        "constraints": [{"path": "load_s", "operator": "<=", "bound": 5.0}],
    }
    made = profile(objective=objective, workload={"task": "forward", "batch_size": 4, "lengths": [64]})
    request = request_of(made, tmp_path)
    found = (request.model, request.task, request.target, request.at_most, request.batch_size, request.lengths)
    assert found == ("mean.onnx", "forward", "latency_s.p99", ("load_s=5.0",), 4, (64,))


def test_options_of_a_newer_version_are_left_out(profile, tmp_path):
    """An option in the request that this version does not have keeps no profile from being tuned again, and is said."""
    request = remembered(TuneRequest(model="m.onnx", lengths=(64,))) | {"energy_target": "10J"}
    made = profile(request=request, model={"source": "none.onnx", "sha256": "0" * 64, "task": "forward"})
    found = request_of(made, tmp_path / "p.json")
    assert (found.model, found.lengths) == ("m.onnx", (64,))
    assert changed(made, tmp_path / "p.json", found)[-1].endswith("left out of the new profile: request.energy_target")
