"""The simulated host itself."""

from dataclasses import replace

import numpy as np
import pytest

from tuner.errors import TrialError
from tuner.records.config import Config
from tuner.replay.noise_models import OK, STILL
from tuner.replay.script import Disturbance, Mishap, SimModel
from tuner.replay.simhost import SimHost

CONFIG = Config(backend="fake")


def host(model=None, **options):
    """Return a host of one behaviour."""
    options.setdefault("noise", STILL)
    return SimHost(lambda _config: model or SimModel(0.05), **options)


def block(arm, n=10):
    """Run one block as a usual plan would."""
    return arm.block(n, discard_calls=3, discard_s=0.05)


def test_time_is_virtual_and_adds_up():
    """Opening, discarded and timed calls pass, nothing else."""
    sim = host()
    arm = sim.open(CONFIG)
    assert sim.clock.now() == 2.0
    block(arm)
    assert sim.clock.now() == pytest.approx(2.0 + 13 * 0.05)


def test_a_still_host_gives_the_true_call():
    """No noise at all."""
    done, _ = block(host().open(CONFIG))
    assert done.latencies_s == pytest.approx((0.05,) * 10)


def test_the_same_seed_plays_the_same_host():
    """Every latency is equal; another seed differs."""
    first, again, other = (block(host(noise=OK, seed=seed).open(CONFIG))[0].latencies_s for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_processes_differ_by_their_effect():
    """One percent, drawn once for each."""
    sim = host(noise=OK)
    effects = [sim.open(CONFIG).effect for _ in range(400)]
    assert np.std(effects) == pytest.approx(0.01, rel=0.15)


def test_the_walk_moves_with_time():
    """After a second the level has moved by about half a percent."""
    sim = host(noise=OK)
    steps = []
    for _ in range(500):
        before = sim.level()
        sim.clock.sleep(1.0)
        steps.append(sim.level() - before)
    assert np.std(steps) == pytest.approx(0.0057, rel=0.15)


def test_the_neighbour_comes_and_goes():
    """On in .04 / (.04 + .3) of the time."""
    sim = host(noise=replace(STILL, neighbour_on_per_s=0.04))
    seen = []
    for _ in range(4000):
        sim.clock.sleep(2.0)
        seen.append(sim.level() > 0)
    assert np.mean(seen) == pytest.approx(0.118, rel=0.25)


def test_a_neighbour_shows_in_telemetry_where_visible():
    """And is null on a host that cannot see steal."""
    neighbour = Disturbance(0.0, 99.0, steal=0.2, foreign=0.1)
    _, seen = block(host(disturbances=[neighbour]).open(CONFIG))
    _, blind = block(host(disturbances=[neighbour], visible=frozenset()).open(CONFIG))
    assert (seen.steal_ratio, seen.foreign_ratio) == (0.2, 0.1)
    assert (blind.steal_ratio, blind.foreign_ratio, blind.throttled_s) == (None, None, None)


def test_a_worker_beside_a_running_one_is_slower():
    """Idle spinners disturb; stopped ones do not."""
    sim = host()
    one, two = sim.open(CONFIG), sim.open(CONFIG)
    slowed, _ = block(one)
    two.pause()
    calm, _ = block(one)
    assert slowed.latencies_s[0] > 1.2 * calm.latencies_s[0]


@pytest.mark.parametrize("stage", ["load", "warm", "block", "fidelity"])
def test_faults_come_at_their_stage(stage):
    """With the kind that was asked for; the process is gone afterwards."""
    sim = host(SimModel(0.05, fault="illegal_instruction", fault_stage=stage))
    with pytest.raises(TrialError) as raised:
        run_all(sim)
    assert (raised.value.stage, raised.value.kind) == (stage, "illegal_instruction")
    assert sim.arms == []


def run_all(sim):
    """Take one arm through all its commands."""
    arm = sim.open(CONFIG)
    arm.warm(cap_s=10.0)
    block(arm)
    arm.fidelity(16)


def test_a_hang_takes_its_time():
    """Thirty seconds until the limit."""
    sim = host(SimModel(0.05, fault="timeout", fault_stage="warm"))
    with pytest.raises(TrialError):
        run_all(sim)
    assert sim.clock.now() == pytest.approx(32.0)


def test_memory_is_shared_by_open_arms():
    """The second of two large ones is killed."""
    sim = host(SimModel(0.05, rss_bytes=600), memory_bytes=1000)
    sim.open(CONFIG)
    with pytest.raises(TrialError, match="out_of_memory"):
        sim.open(CONFIG)


def test_a_kill_from_outside_shows_at_the_next_command():
    """The oldest process dies."""
    sim = host(mishaps=[Mishap(3.0, "kill")])
    arm = sim.open(CONFIG)
    sim.clock.sleep(5.0)
    with pytest.raises(TrialError, match="crash"):
        block(arm)


def test_a_suspend_is_seen_by_the_other_clock():
    """The call in flight is long, and telemetry says why."""
    arm = host(mishaps=[Mishap(2.3, "suspend", 60.0)]).open(CONFIG)
    done, seen = block(arm)
    assert max(done.latencies_s) > 60.0
    assert seen.suspended_s == 60.0


def test_a_coarse_clock_rounds_down():
    """Steps of 15.6 ms, as some hosts have."""
    done, _ = block(host(clock_step_s=0.0156).open(CONFIG))
    assert done.latencies_s == pytest.approx((0.0468,) * 10)


def test_stalls_are_throttling():
    """Calls that the quota stopped, and whose fault it was."""
    done, seen = block(host(SimModel(0.05, stall_share=0.5, stall_is_own=True)).open(CONFIG), n=40)
    assert seen.throttled_s == pytest.approx(0.08 * sum(latency > 0.1 for latency in done.latencies_s))
    assert seen.own_throttling is True


def test_the_sentinel_feels_the_host_not_the_processes():
    """Scripted slowness shows."""
    calm, slow = host(), host(disturbances=[Disturbance(0.0, 9.0, sentinel_log=0.3)])
    assert slow.sentinel(3)[0] == pytest.approx(calm.sentinel(3)[0] * np.exp(0.3))
