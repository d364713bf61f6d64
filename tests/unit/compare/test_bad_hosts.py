"""Hosts that measure badly: the result stays right, or says that it cannot be known."""

import pytest

from tuner.compare.anchor import Anchor
from tuner.compare.playoff import run_playoff
from tuner.compare.trial import run_trial
from tuner.errors import HostError, TrialError
from tuner.replay.noise_models import OK, QUIET, STILL
from tuner.replay.script import Disturbance, Mishap, SimModel

EQUAL = {"a": SimModel(0.05), "b": SimModel(0.05)}
FASTER = {"a": SimModel(0.045), "b": SimModel(0.05)}


def blocks_of(outcome):
    """Return every block of a playoff."""
    return [block for pair in outcome.pairs for run in (pair.a, pair.b) for block in run.blocks]


def play(bench, named, models, **options):
    """Play a off against b."""
    return run_playoff(named("a"), named("b"), bench(models, **options))


def test_no_steal_field_no_pressure_no_control_groups(bench, named):
    """Nothing is visible: nothing is refused, and ten percent are found."""
    outcome = play(bench, named, FASTER, noise=QUIET, visible=frozenset())
    assert outcome.verdict == "WIN"
    assert all(block.telemetry.steal_ratio is None for block in blocks_of(outcome))


def test_a_slow_clock(bench, named):
    """Steps of 1 ms under calls of 50 ms."""
    assert play(bench, named, FASTER, noise=QUIET, clock_step_s=0.001).verdict == "WIN"


@pytest.mark.parametrize("seconds", [30.0, -30.0])
def test_a_clock_that_jumps_inside_a_block(bench, named, seconds):
    """The pair is redone whole, and no figure comes from it."""
    outcome = play(bench, named, EQUAL, mishaps=[Mishap(7.0, "jump", seconds)])
    refused = [block for block in blocks_of(outcome) if not block.is_used]
    assert ("clock",) in {block.dirty for block in refused}
    assert len(refused) == 2
    assert outcome.candidate.latency_s.mean == pytest.approx(0.05)


def test_suspend_inside_a_block(bench, named):
    """A night's sleep of the machine is in no latency."""
    outcome = play(bench, named, EQUAL, mishaps=[Mishap(7.0, "suspend", 30_000.0)])
    refused = [block for block in blocks_of(outcome) if not block.is_used]
    assert any("suspended" in block.dirty for block in refused)
    assert outcome.candidate.latency_s.mean == pytest.approx(0.05)
    assert outcome.baseline.latency_s.mean == pytest.approx(0.05)


def test_a_neighbour_that_starts_half_way_and_hides(bench, named):
    """Everything is 30% slower from the third pair on: the ratio does not move."""
    hidden = Disturbance(from_s=40.0, to_s=1e9, log_slower=0.26)
    outcome = play(bench, named, EQUAL, noise=QUIET, disturbances=[hidden])
    assert outcome.verdict == "NO_WORTHWHILE_WIN"
    assert outcome.speedup.ratio == pytest.approx(1.0, abs=0.01)


def test_a_neighbour_that_is_seen_is_waited_for(bench, named):
    """Steal for some seconds: those pairs are redone whole."""
    seen = Disturbance(from_s=7.0, to_s=9.0, log_slower=0.26, steal=0.2)
    outcome = play(bench, named, EQUAL, disturbances=[seen])
    refused = [block for block in blocks_of(outcome) if not block.is_used]
    assert len(refused) in {2, 4}
    assert not outcome.low_confidence
    assert all(not block.dirty for block in blocks_of(outcome) if block.is_used)


def test_a_neighbour_that_never_leaves(bench, named):
    """More than 30% redone: gating stops, the result is of low confidence, back-off stays within 5%."""
    always = Disturbance(from_s=0.0, to_s=1e9, steal=0.2)
    rig = bench(FASTER, noise=QUIET, disturbances=[always], budget_s=400.0)
    outcome = run_playoff(named("a"), named("b"), rig)
    assert outcome.low_confidence
    assert "low_confidence" in {notice.code for notice in outcome.candidate.notices}
    assert rig.gate.waited_s <= 0.05 * 400.0
    assert outcome.verdict == "WIN"


def test_throttling_in_each_period_by_the_config_itself_counts(bench, named):
    """It is a property of the configuration: kept, reported, and it loses by it."""
    throttled = SimModel(0.05, stall_share=0.5, stall_s=0.05, stall_is_own=True)
    outcome = play(bench, named, {"a": throttled, "b": SimModel(0.05)}, noise=QUIET)
    assert outcome.verdict == "NO_WORTHWHILE_WIN"
    assert all(not block.dirty for block in blocks_of(outcome))
    assert "throttled" in {notice.code for notice in outcome.candidate.notices}


def test_throttling_by_others_is_redone(bench, named):
    """The group's other processes used the quota: dirty until the gate gives up."""
    throttled = SimModel(0.05, stall_share=0.5, stall_s=0.05)
    outcome = play(bench, named, {"a": throttled, "b": throttled}, noise=QUIET)
    assert outcome.low_confidence
    assert "throttled" in {reason for block in blocks_of(outcome) for reason in block.dirty}


def test_a_worker_that_slows_down_over_time(bench, named):
    """One percent a second: both arms alike, so no gain is claimed; the class is told."""
    slowing = SimModel(0.05, drift_per_s=0.01, warm_kind="slowdown")
    outcome = play(bench, named, {"a": slowing, "b": slowing}, noise=OK)
    assert outcome.verdict != "WIN"
    assert "slowdown" in {notice.code for notice in outcome.candidate.notices}


def test_a_candidate_that_slows_down_loses_what_it_loses(bench, named):
    """Fast at first, slow by its later blocks: the later ones count."""
    models = {"a": SimModel(0.05, drift_per_s=0.05), "b": SimModel(0.05)}
    assert play(bench, named, models, noise=QUIET).verdict == "NO_WORTHWHILE_WIN"


def test_an_interrupt_leaves_nothing_behind(bench, named):
    """Ctrl-C between two blocks, one arm being stopped: both are closed."""

    def interrupt(event):
        if event.kind == "pair":
            raise KeyboardInterrupt

    rig = bench(EQUAL, on_event=interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_playoff(named("a"), named("b"), rig)
    assert rig.runner.arms == []


def test_an_interrupt_in_a_trial_leaves_only_the_anchor(bench, named):
    """Which its owner releases."""

    def interrupt(event):
        if event.kind == "pair":
            raise KeyboardInterrupt

    rig = bench(EQUAL, on_event=interrupt)
    anchor = Anchor(named("b"), rig)
    with pytest.raises(KeyboardInterrupt):
        run_trial(named("a"), anchor, rig)
    anchor.release()
    assert rig.runner.arms == []


def test_the_sentinel_holds_a_pair_back(bench, named):
    """Frequency fell, nothing else shows it: wait before the pair, at most twice."""
    slow = Disturbance(from_s=5.0, to_s=8.0, sentinel_log=0.3)
    rig = bench(EQUAL, noise=STILL, disturbances=[slow])
    rig.audit()
    rig.clock.sleep(5.0)
    began = rig.clock.now()
    run_playoff(named("a"), named("b"), rig)
    assert rig.gate.waited_s == 5.0
    assert rig.clock.now() > began


@pytest.mark.parametrize(("block_sd", "name"), [(0.001, "quiet"), (0.02, "ok"), (0.05, "noisy"), (0.2, "hostile")])
def test_the_audit_names_the_class_of_the_host(bench, block_sd, name):
    """By the spread of the sentinel."""
    from dataclasses import replace

    rig = bench(EQUAL, noise=replace(STILL, block_sd=block_sd))
    assert rig.audit() == name


@pytest.fixture
def dying_sentinel(monkeypatch):
    """Return a function that lets the next sentinels of a bench die; the list it returns grows by one with each."""

    def arrange(rig, times):
        whole, died = rig.runner.sentinel, []

        def sentinel(repeats):
            if len(died) < times:
                died.append(repeats)
                raise TrialError("spawn", "crash", "SIGKILL")
            return whole(repeats)

        monkeypatch.setattr(rig.runner, "sentinel", sentinel)
        return died

    return arrange


def test_the_audit_survives_one_worker_that_dies(bench, dying_sentinel):
    """It is run again, once."""
    rig = bench(EQUAL)
    died = dying_sentinel(rig, 1)
    assert (rig.audit(), len(died)) == ("quiet", 1)


def test_the_audit_says_that_no_worker_runs(bench, dying_sentinel):
    """A host on which none lives is no bug of ours: the reason, and what looks further."""
    rig = bench(EQUAL)
    dying_sentinel(rig, 2)
    with pytest.raises(HostError, match=r"no worker runs here \(spawn: crash: SIGKILL\): see `autotune doctor`"):
        rig.audit()


def test_a_sentinel_that_dies_holds_a_pair_back(bench, named, dying_sentinel):
    """It costs a pause, never the playoff."""
    rig = bench(EQUAL)
    rig.audit()
    died = dying_sentinel(rig, 1)
    found = run_playoff(named("a"), named("b"), rig)
    assert (len(died), rig.gate.waited_s) == (1, 5.0)
    assert found.verdict in ("NO_WORTHWHILE_WIN", "INCONCLUSIVE")
