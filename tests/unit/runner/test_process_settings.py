"""Variables and memory policies that a worker was started without never become a result."""

import pytest

from tuner.records.config import ProcessSettings
from tuner.records.measurement import Effective
from tuner.runner.local import process_not_applied


@pytest.fixture
def asked():
    """Return settings with a variable."""
    return ProcessSettings(env={"OMP_WAIT_POLICY": "passive"})


@pytest.mark.parametrize("found", [{"OMP_WAIT_POLICY": "passive", "MALLOC_ARENA_MAX": "1"}, {}])
def test_in_force_or_unreadable(asked, found, two_cpus):
    """What reads back as asked is in force; what cannot be read is no failure."""
    assert process_not_applied(asked, Effective(environment=found), two_cpus) == ()


@pytest.mark.parametrize("found", [{"OMP_WAIT_POLICY": "active"}, {"MALLOC_ARENA_MAX": "1"}])
def test_another_value(asked, found, two_cpus):
    """Another value, or none, is named."""
    (text,) = process_not_applied(asked, Effective(environment=found), two_cpus)
    assert text.startswith("process.env.OMP_WAIT_POLICY: asked passive")


@pytest.mark.parametrize(("policy", "n_texts"), [("bind:0", 0), (None, 0), ("default", 1), ("bind:1", 1)])
def test_memory_policy(policy, n_texts, two_cpus):
    """A policy that the kernel does not confirm is named; one that cannot be asked is not."""
    texts = process_not_applied(ProcessSettings(memory_policy="bind"), Effective(memory_policy=policy), two_cpus)
    assert len(texts) == n_texts
