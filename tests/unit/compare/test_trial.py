"""Trials against the resident anchor."""

import math

import pytest

from tuner.compare.anchor import Anchor, Incumbent
from tuner.compare.trial import run_trial
from tuner.errors import HostError
from tuner.records.workload import Objective
from tuner.replay.script import Disturbance, Mishap, SimModel

BASE = SimModel(0.05)


def trial(bench, named, candidate, *, incumbent=None, base=BASE, **options):
    """Run one trial of `candidate` against `base`; return outcome, anchor and rig."""
    arguments = {name: options.pop(name) for name in ("fidelity_samples", "allow_prune") if name in options}
    rig = bench({"base": base, "candidate": candidate, "best": SimModel(0.02)}, **options)
    anchor = Anchor(named("base"), rig)
    anchor.incumbent = incumbent
    return run_trial(named("candidate"), anchor, rig, **arguments), anchor, rig


def test_value_is_the_log_ratio(bench, named):
    """Half the time is ln 0.5."""
    outcome, anchor, _ = trial(bench, named, SimModel(0.025))
    assert outcome.value == pytest.approx(math.log(0.5))
    assert (outcome.state, outcome.is_estimate, outcome.anchor_id) == ("measured", False, anchor.anchor_id)


def test_two_pairs_in_abba_order(bench, named):
    """Two block pairs; the order of the second mirrors the first."""
    outcome, _, _ = trial(bench, named, SimModel(0.05))
    blocks = sorted((*outcome.candidate_blocks, *outcome.anchor_blocks), key=lambda block: block.order)
    assert "".join(block.arm for block in blocks) in {"abba", "baab"}
    assert len(outcome.ratios) == 2


def test_both_arms_make_the_same_number_of_calls(bench, named):
    """A faster arm is not timed on more calls."""
    outcome, _, _ = trial(bench, named, SimModel(0.01))
    assert len({len(block.latencies_s) for block in (*outcome.candidate_blocks, *outcome.anchor_blocks)}) == 1


def test_the_idle_arm_is_stopped(bench, named):
    """A worker that runs beside another is 20% slower in the simulation; nobody is."""
    outcome, _, rig = trial(bench, named, SimModel(0.05))
    assert outcome.value == pytest.approx(0.0)
    assert outcome.measurement.latency_s.p50 == pytest.approx(0.05)
    assert all(arm.is_paused for arm in rig.runner.arms)


def test_the_candidate_is_closed_and_the_anchor_stays(bench, named):
    """One process is left, the anchor's."""
    _, anchor, rig = trial(bench, named, SimModel(0.05))
    assert [arm.arm_id for arm in rig.runner.arms] == [anchor.anchor_id]


def test_every_failure_kind_is_an_outcome(bench, named):
    """Crash, hang, memory, wrong output: a record, and the study goes on."""
    for kind in ("crash", "timeout", "illegal_instruction", "incorrect", "not_applied", "error"):
        for stage in ("load", "warm", "block"):
            outcome, _, rig = trial(bench, named, SimModel(0.05, fault=kind, fault_stage=stage))
            assert (outcome.state, outcome.failure.kind, outcome.failure.stage) == ("failed", kind, stage)
            assert (outcome.value, outcome.measurement) == (None, None)
            assert len(rig.runner.arms) == 1


def test_blocks_before_a_crash_are_kept(bench, named):
    """What was measured until then stays in the record."""
    outcome, _, _ = trial(bench, named, SimModel(0.05, fault="crash", fault_after=1))
    assert len(outcome.candidate_blocks) == 1
    assert outcome.anchor_blocks


def test_a_baseline_that_does_not_load_is_a_clear_error(bench, named):
    """Not a failed trial: nothing can be compared."""
    with pytest.raises(HostError, match="the baseline failed"):
        trial(bench, named, SimModel(0.05), base=SimModel(0.05, fault="crash", fault_stage="load"))


def test_dominated_candidates_cost_three_calls(bench, named):
    """Above three times the incumbent's p50: pruned with an estimate, no block of it is run."""
    incumbent = Incumbent(named("best"), math.log(0.4), 0.02, 0.02)
    outcome, _, _ = trial(bench, named, SimModel(0.2), incumbent=incumbent)
    assert (outcome.state, outcome.is_estimate, outcome.candidate_blocks) == ("pruned", True, ())
    assert outcome.value == pytest.approx(math.log(4.0))


def test_dominance_is_for_latency_targets_only(bench, named):
    """A slow candidate may be the smallest."""
    incumbent = Incumbent(named("best"), 0.0, 0.02, 0.02)
    objective = Objective(target="peak_rss_bytes")
    outcome, _, _ = trial(bench, named, SimModel(0.2, rss_bytes=100), incumbent=incumbent, objective=objective)
    assert outcome.state == "measured"


def test_a_clearly_worse_candidate_ends_after_one_pair(bench, named):
    """A third slower than the incumbent: the lower bound is above 10%."""
    incumbent = Incumbent(named("best"), math.log(0.8), 0.04, 0.04)
    outcome, _, _ = trial(bench, named, SimModel(0.055), incumbent=incumbent)
    assert (outcome.state, len(outcome.ratios)) == ("pruned", 1)
    assert outcome.value == pytest.approx(math.log(1.1))


def test_a_slightly_worse_candidate_is_measured_to_the_end(bench, named):
    """Seven percent worse is not shown to be ten."""
    incumbent = Incumbent(named("best"), 0.0, 0.05, 0.05)
    outcome, _, _ = trial(bench, named, SimModel(0.0535), incumbent=incumbent)
    assert (outcome.state, len(outcome.ratios)) == ("measured", 2)


def test_pruning_can_be_switched_off(bench, named):
    """A race measures everyone to the end."""
    incumbent = Incumbent(named("best"), math.log(0.4), 0.02, 0.02)
    assert trial(bench, named, SimModel(0.2), incumbent=incumbent, allow_prune=False)[0].state == "measured"


def test_fidelity_is_checked_in_the_same_process_after_the_last_block(bench, named):
    """One process opened for the candidate, one for the anchor."""
    outcome, _, rig = trial(bench, named, SimModel(0.05), fidelity_samples=64)
    assert (outcome.fidelity.n, outcome.measurement.fidelity.n, rig.runner.n_opened) == (64, 64, 2)


def test_incorrect_outputs_fail_the_trial(bench, named):
    """However fast it was."""
    outcome, _, _ = trial(bench, named, SimModel(0.01, fault="incorrect", fault_stage="fidelity"), fidelity_samples=64)
    assert (outcome.state, outcome.failure.kind, outcome.value) == ("failed", "incorrect", None)


def test_a_pruned_trial_checks_no_fidelity(bench, named):
    """It will not be chosen."""
    incumbent = Incumbent(named("best"), math.log(0.4), 0.02, 0.02)
    assert trial(bench, named, SimModel(0.2), incumbent=incumbent, fidelity_samples=64)[0].fidelity is None


def test_five_second_calls_have_no_resident_anchor(bench, named):
    """One timed call each, the anchor's taken once."""
    outcome, _, rig = trial(bench, named, SimModel(6.0), base=SimModel(12.0))
    assert outcome.value == pytest.approx(math.log(0.5))
    assert [len(block.latencies_s) for block in outcome.candidate_blocks] == [1]
    assert rig.runner.arms == []


def test_a_slow_anchor_is_timed_only_once(bench, named):
    """A second trial opens the candidate only."""
    _, anchor, rig = trial(bench, named, SimModel(6.0), base=SimModel(12.0))
    opened = rig.runner.n_opened
    run_trial(named("best"), anchor, rig)
    assert rig.runner.n_opened == opened + 1


def test_arms_that_do_not_fit_together_run_in_turn(bench, named):
    """Two of 600 MB in 1 GB: one after the other, and a result all the same."""
    big = SimModel(0.04, rss_bytes=600_000_000)
    base = SimModel(0.05, rss_bytes=600_000_000)
    outcome, _, _ = trial(
        bench, named, big, base=base, memory_bytes=1_000_000_000, memory_budget_bytes=1_000_000_000, fidelity_samples=16
    )
    assert outcome.value == pytest.approx(math.log(0.8))
    assert outcome.fidelity.n == 16


def test_out_of_memory_beside_the_anchor_gets_a_second_chance(bench, named):
    """An unforeseen kill by the kernel: once more without the neighbour."""
    outcome, _, _ = trial(
        bench, named, SimModel(0.04, rss_bytes=900), base=SimModel(0.05, rss_bytes=200), memory_bytes=1000
    )
    assert (outcome.state, outcome.value) == ("measured", pytest.approx(math.log(0.8)))


def test_out_of_memory_alone_is_a_failure(bench, named):
    """It does not fit at all."""
    outcome, _, _ = trial(
        bench, named, SimModel(0.04, rss_bytes=2000), base=SimModel(0.05, rss_bytes=200), memory_bytes=1000
    )
    assert outcome.failure.kind == "out_of_memory"


def test_an_anchor_killed_from_outside_is_opened_again(bench, named):
    """The pairs are run anew against another id, and the candidate keeps its process."""
    rig = bench({"base": BASE, "candidate": SimModel(0.025)}, mishaps=[Mishap(10.0, "kill")])
    anchor = Anchor(named("base"), rig)
    first = run_trial(named("candidate"), anchor, rig)
    second = run_trial(named("candidate"), anchor, rig)
    assert (first.anchor_id, second.anchor_id) == ("sim-1", "sim-4")
    assert second.value == pytest.approx(first.value)


def test_a_restarted_anchor_is_fitted_by_the_incumbent(bench, named):
    """Another process of the anchor is 5% slower; values stay on the first one's scale."""
    rig = bench({"base": BASE, "best": SimModel(0.025)})
    anchor = Anchor(named("base"), rig)
    first = run_trial(named("best"), anchor, rig)
    anchor.incumbent = Incumbent(named("best"), first.value, 0.025, 0.025)
    anchor.lost()
    anchor.arm()[0].effect = 0.05
    anchor.needs_refit = True
    again = run_trial(named("best"), anchor, rig)
    assert anchor.offset == pytest.approx(0.05)
    assert again.value == pytest.approx(first.value)


def test_measure_s_counts_opening_warm_up_and_blocks(bench, named):
    """On a still host all the time of a trial is on the bench."""
    outcome, _, rig = trial(bench, named, SimModel(0.05))
    assert rig.measure_s == pytest.approx(rig.clock.now())
    assert outcome.measure_s == pytest.approx(rig.measure_s)


def test_a_worker_that_outgrows_the_budget_is_refused(bench, named):
    """Before the kernel kills something: kind out_of_memory, with both figures."""
    grown = SimModel(0.04, rss_bytes=3 * 2**20)
    outcome, _, _ = trial(bench, named, grown, base=SimModel(0.05, rss_bytes=2**19), memory_budget_bytes=2 * 2**20)
    assert outcome.failure.kind == "out_of_memory"
    assert "3 MiB resident, the budget is 2 MiB" in outcome.failure.message


def test_a_disturbed_warm_up_does_not_make_a_slow_model(bench, named):
    """Windows of 0.05, 0.05 and 0.9 s: blocks are planned for calls of 0.05 s."""
    _, run = bench({"candidate": SimModel(0.05)}).start(named("candidate"), "a")
    run.warmed = run.warmed.model_copy(update={"call_s": 0.9, "windows_s": (0.05, 0.05, 0.9)})
    assert run.call_s == run.cost().call_s == 0.05


def test_nobody_is_dominated_while_the_whole_host_is_slow(bench, named):
    """Everything is 18 times slower, the anchor too: the candidate is measured, not pruned."""
    storm = Disturbance(from_s=6.0, to_s=1e9, log_slower=2.9)
    rig = bench({"base": BASE, "candidate": SimModel(0.04)}, disturbances=[storm])
    anchor = Anchor(named("base"), rig)
    anchor.reference()
    rig.clock.sleep(6.0)
    anchor.incumbent = Incumbent(named("base"), 0.0, 0.05, 0.05)
    outcome = run_trial(named("candidate"), anchor, rig)
    assert (outcome.state, outcome.value) == ("measured", pytest.approx(math.log(0.8)))
    assert outcome.warmed.first_call_s == pytest.approx(0.12)
