"""Linear algebra of a search in one thread, and nothing of it left in the environment."""

import os

import pytest

from tuner.study.threads import VARIABLE, one_thread


@pytest.mark.parametrize("before", [None, "3"])
def test_the_environment_is_as_before(monkeypatch, before):
    """Programs that are started later see what the user has set."""
    if before is None:
        monkeypatch.delenv(VARIABLE, raising=False)
    else:
        monkeypatch.setenv(VARIABLE, before)
    inside = []
    with one_thread():
        inside.append(os.environ[VARIABLE])
    assert (inside, os.environ.get(VARIABLE)) == (["1"], before)
