"""Points as configurations."""

import pytest

from tuner.errors import UsageError
from tuner.records.config import Config, Placement, ProcessSettings, StepSettings

ENGINE = """
backend = "engine"
[artifacts]
small = ["convert", "shrink"]
[session.threads]
kind = "integer"
min = 1
max = 2
[session.ratio]
kind = "real"
min = 0
max = 1
[process.env.OMP_WAIT_POLICY]
kind = "choice"
values = ["", "ACTIVE"]
[process.env.FLAG]
kind = "choice"
values = [true, 2]
[process.allocator]
kind = "choice"
values = ["default", "jemalloc"]
"""
SHRINK = 'step = "shrink"\n[artifact.shrink.level]\nkind = "choice"\nvalues = [1, true]\n'
CONVERT = 'step = "convert"'
SHARED = """
[process.placement.core_class]
kind = "choice"
values = ["any", "performance"]
[process.placement.n_cpus]
kind = "integer"
min = 2
max = 2
[process.memory_policy]
kind = "choice"
values = ["none", "bind"]
"""


@pytest.fixture
def space(resolve):
    """Return a space with every kind of setting."""
    return resolve(ENGINE, SHRINK, CONVERT, SHARED)


def test_defaults_are_left_out(space):
    """Words for absent values become null, an empty variable is not set, and steps keep their order."""
    point = space.complete({"backend": "engine"})
    assert space.to_config(point) == Config(
        backend="engine",
        artifact=(StepSettings(step="convert"), StepSettings(step="shrink", settings={"level": 1})),
        session={"threads": 1, "ratio": 0.0},
        process=ProcessSettings(placement=Placement(n_cpus=2), env={"FLAG": "1"}),
    )


def test_values_are_written(space):
    """Other values stand in the configuration, those of variables as texts."""
    point = space.complete(
        {
            "backend": "engine",
            "artifact.shrink.level": True,
            "process.env.OMP_WAIT_POLICY": "ACTIVE",
            "process.env.FLAG": 2,
            "process.allocator": "jemalloc",
            "process.placement.core_class": "performance",
            "process.memory_policy": "bind",
        }
    )
    config = space.to_config(point)
    assert config.artifact[1].settings == {"level": True}
    assert config.process == ProcessSettings(
        placement=Placement(n_cpus=2, core_class="performance"),
        memory_policy="bind",
        env={"OMP_WAIT_POLICY": "ACTIVE", "FLAG": "2"},
        allocator="jemalloc",
    )


def test_round_trip(space):
    """Every point comes back from its configuration, also through JSON."""
    points = space.enumerate()
    assert len(points) == 2**7 * 9
    for point in points:
        config = Config.from_json(space.to_config(point).to_json())
        back = space.to_point(config)
        assert back == point
        assert {name: type(value) for name, value in back.items()} == {n: type(v) for n, v in point.items()}


@pytest.mark.parametrize(
    "change",
    [
        {"backend": "other"},
        {"artifact": ()},
        {"artifact": (StepSettings(step="shrink", settings={"level": 1}), StepSettings(step="convert"))},
        {"session": {}},
        {"session": {"threads": 3, "ratio": 0.0}},
        {"session": {"threads": 1, "ratio": 0.0, "other": 1}},
        {"session": {"threads": True, "ratio": 0.0}},
        {"instances": 2},
        {"process": ProcessSettings()},
        {"process": ProcessSettings(placement=Placement(n_cpus=2), env={"FLAG": "1", "OTHER": "1"})},
        {"process": ProcessSettings(placement=Placement(n_cpus=2, scope="node"), env={"FLAG": "1"})},
    ],
)
def test_foreign_configurations(space, change):
    """A configuration that is no point of the space has none."""
    config = space.to_config(space.complete({"backend": "engine"}))
    assert space.to_point(config) is not None
    assert space.to_point(config.model_copy(update=change)) is None


def test_broken_rules_have_no_point(resolve):
    """A configuration that breaks a rule is no point, nor a point a configuration."""
    rule = '[[rule]]\nrequire = "session.threads == 1 or session.ratio > 0"\nreason = "both idle"'
    space = resolve(ENGINE + rule, SHRINK, CONVERT, SHARED)
    good = space.complete({"backend": "engine", "session.threads": 1, "session.ratio": 0.0})
    broken = good | {"session.threads": 2}
    with pytest.raises(UsageError, match="not a point of this space: both idle"):
        space.to_config(broken)
    config = space.to_config(good).model_copy(update={"session": {"threads": 2, "ratio": 0.0}})
    assert space.to_point(config) is None
