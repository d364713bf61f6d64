"""A whole run that may use one CPU only: workers, the stopped baseline and the parent share it."""

import os

import pytest

from tuner.loading.files import read_profile

CPUS = getattr(os, "sched_getaffinity", lambda _: set())(0)


@pytest.fixture
def last_cpu():
    """Confine what is started here to the last CPU, and return its number."""
    os.sched_setaffinity(0, {max(CPUS)})
    yield max(CPUS)
    os.sched_setaffinity(0, CPUS)


@pytest.mark.slow
@pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs, or it is no other run than any")
def test_a_clear_gain_is_found_on_one_cpu(tmp_path, command, tune_options, last_cpu):
    """Blocks are not refused for the parent's or the other arm's own work; the profile names the one CPU."""
    result = command("tune", *tune_options(tmp_path, 500_000, "--trials", "1", "--budget", "5m"), cwd=tmp_path)
    assert result.code == 0, result.err
    profile = read_profile(tmp_path / "p.json")
    assert (profile.verdict, profile.speedup.pairs) == ("WIN", 5)
    assert profile.hardware["bound_by"] == "affinity"
    assert profile.best.measurement.effective.cpus == (last_cpu,)
