"""Points as rows of codes."""

import numpy as np
import pytest

from tuner.study.encoding import PointTable


@pytest.fixture
def table(engine_space):
    """Return the table of a space with artifacts and precisions."""
    return PointTable(engine_space, engine_space.enumerate())


def column_of(table, name):
    """Return the position of a column."""
    return [column.name for column in table.columns].index(name)


def test_every_point_has_its_row(table):
    """Encoding is one to one over the listed points."""
    assert [table.row_of(point) for point in table.points] == list(range(len(table)))


def test_extending_by_known_points_adds_nothing(table):
    """A point stands in the table once."""
    n = len(table)
    assert table.extend(table.points[3:5]) == [3, 4]
    assert len(table) == n


def test_code_zero_means_not_active(table):
    """What has no effect in a point has code 0, and only that."""
    codes = table.codes[:, column_of(table, "session.spin")]
    assert [code == 0 for code in codes] == ["session.spin" not in point for point in table.points]


def test_true_is_not_one(make_engine_space):
    """A switch and a number are told apart."""
    space = make_engine_space('[session.mode]\nkind = "choice"\nvalues = [true, 1]\n')
    table = PointTable(space, space.enumerate())
    assert len(set(table.codes[:, column_of(table, "session.mode")])) == 2


def test_numerics_groups_are_those_of_the_space(table, engine_space):
    """Rows share a number exactly where the space gives them one numerics key."""
    keys = [engine_space.numerics_key(point) for point in table.points]
    assert len(set(zip(keys, table.numerics.tolist(), strict=True))) == len(set(keys)) == len(set(table.numerics))


def test_artifact_groups_are_those_of_the_configs(table, engine_space):
    """Rows share a number exactly where they open the same artifact with the same backend."""
    configs = [engine_space.to_config(point) for point in table.points]
    keys = [(config.backend, config.artifact_digest()) for config in configs]
    assert len(set(zip(keys, table.artifacts.tolist(), strict=True))) == len(set(keys)) == len(set(table.artifacts))


def test_thread_counts_are_placed_by_ratio(table):
    """From 1 to 2 threads is as far as from 2 to 4."""
    places = table.columns[column_of(table, "session.threads")].places
    assert places[1:] == pytest.approx([0.0, 0.5, 0.7925, 1.0], abs=1e-4)


@pytest.mark.parametrize("length", [0.1, 0.7, 5.0])
def test_likeness_is_a_covariance(table, length):
    """No column gives a matrix with a negative eigenvalue, whatever the length."""
    lowest = min(float(np.linalg.eigvalsh(column.likeness(length)).min()) for column in table.columns)
    assert lowest > -1e-10


def test_one_hot_has_one_code_a_column(table):
    """Each row has as many ones as there are columns."""
    assert set(table.one_hot.sum(axis=1).tolist()) == {float(len(table.columns))}
