"""Playoffs on a simulated host."""

import pytest

from tuner.compare.arms import ArmCost
from tuner.compare.bench import run_bench
from tuner.compare.playoff import run_playoff
from tuner.errors import HostError, TrialError
from tuner.records.measurement import Fidelity
from tuner.records.workload import Constraint, Objective
from tuner.replay.noise_models import OK, QUIET, ROUGH, NoiseModel
from tuner.replay.script import SimModel


def playoff(bench, named, candidate, baseline, **options):
    """Play `candidate` off against `baseline`; options of the playoff by name, the others make the bench."""
    names = ("deadline_s", "hard_deadline_s", "costs", "fidelity")
    arguments = {name: options.pop(name) for name in names if name in options}
    rig = bench({"a": candidate, "b": baseline}, **options)
    outcome = run_playoff(named("a"), named("b"), rig, **arguments)
    return outcome, rig


def test_a_clear_gain_wins_at_the_first_look(bench, named):
    """Five pairs of fresh processes, four block pairs each."""
    outcome, rig = playoff(bench, named, SimModel(0.04), SimModel(0.05), noise=QUIET)
    assert (outcome.verdict, outcome.stopped_by, len(outcome.pairs)) == ("WIN", "decided", 5)
    assert all(len(pair.pairs) == 4 for pair in outcome.pairs)
    assert rig.runner.n_opened == 10


def test_every_process_is_fresh(bench, named):
    """No arm takes part in two pairs, and none is left running."""
    outcome, rig = playoff(bench, named, SimModel(0.05), SimModel(0.05), noise=OK)
    arm_ids = [run.arm_id for pair in outcome.pairs for run in (pair.a, pair.b)]
    assert len(set(arm_ids)) == len(arm_ids) == 2 * len(outcome.pairs)
    assert rig.runner.arms == []


def test_a_coin_says_who_starts_first(bench, named):
    """Over some pairs both arms do."""
    outcome, _ = playoff(bench, named, SimModel(0.05), SimModel(0.05), noise=OK)
    assert {pair.first for pair in outcome.pairs} == {"a", "b"}


def test_no_gain_is_said(bench, named):
    """Equal arms on a quiet host: the upper limit is below the margin."""
    outcome, _ = playoff(bench, named, SimModel(0.05), SimModel(0.05), noise=QUIET)
    assert outcome.verdict == "NO_WORTHWHILE_WIN"
    assert outcome.speedup.ci95[0] < 1.0 < outcome.speedup.ci95[1]


def test_too_much_noise_is_inconclusive_with_the_gain_it_could_resolve(bench, named):
    """After the last look: what this host could have shown."""
    outcome, _ = playoff(bench, named, SimModel(0.049), SimModel(0.05), noise=ROUGH)
    assert (outcome.verdict, outcome.stopped_by, len(outcome.pairs)) == ("INCONCLUSIVE", "looks", 12)
    assert outcome.speedup.mde > 0.02


def test_a_loss_is_no_worthwhile_win(bench, named):
    """Slower candidates are not shipped, and stop at the first look."""
    outcome, _ = playoff(bench, named, SimModel(0.06), SimModel(0.05), noise=QUIET)
    assert (outcome.verdict, len(outcome.pairs)) == ("NO_WORTHWHILE_WIN", 5)


def test_running_out_of_time_spends_no_alpha(bench, named):
    """Seven pairs fit, the second look does not: it stops after the first, undecided."""
    costs = (ArmCost(2.0, 1.4, 0.05), ArmCost(2.0, 1.4, 0.05))
    outcome, rig = playoff(bench, named, SimModel(0.049), SimModel(0.05), noise=ROUGH, costs=costs, deadline_s=90.0)
    assert (outcome.verdict, outcome.stopped_by, len(outcome.pairs)) == ("INCONCLUSIVE", "time", 5)
    assert rig.clock.now() <= 90.0


def test_the_first_look_may_use_the_last_tenth(bench, named):
    """The first look has the hard deadline, later ones the budget's end."""
    costs = (ArmCost(2.0, 1.4, 0.05), ArmCost(2.0, 1.4, 0.05))
    outcome, _ = playoff(
        bench, named, SimModel(0.04), SimModel(0.05), noise=QUIET, costs=costs, deadline_s=10.0, hard_deadline_s=100.0
    )
    assert (outcome.verdict, len(outcome.pairs)) == ("WIN", 5)


def test_no_look_no_verdict(bench, named):
    """Three pairs say nothing, whatever they show."""
    costs = (ArmCost(2.0, 1.4, 0.05), ArmCost(2.0, 1.4, 0.05))
    outcome, _ = playoff(bench, named, SimModel(0.01), SimModel(0.05), costs=costs, deadline_s=40.0)
    assert (outcome.verdict, outcome.judgement, outcome.stopped_by) == ("INCONCLUSIVE", None, "time")
    assert 0 < len(outcome.pairs) < 5


def test_a_candidate_that_crashes_cannot_win(bench, named):
    """The third block of any process is its last."""
    outcome, rig = playoff(bench, named, SimModel(0.01, fault="crash", fault_after=2), SimModel(0.05))
    assert (outcome.verdict, outcome.stopped_by, outcome.failure.kind) == ("INCONCLUSIVE", "failure", "crash")
    assert rig.runner.arms == []


def test_a_baseline_that_crashes_is_a_clear_error(bench, named):
    """Twice in fresh processes."""
    with pytest.raises(HostError, match="the baseline failed"):
        playoff(bench, named, SimModel(0.05), SimModel(0.05, fault="crash"))


def test_arms_that_do_not_fit_together_run_in_turn(bench, named):
    """The pair's processes run one after the other, in random order."""
    outcome, _ = playoff(
        bench, named, SimModel(0.04, rss_bytes=600), SimModel(0.05, rss_bytes=600), noise=QUIET, memory_bytes=1000
    )
    assert outcome.verdict == "WIN"
    assert {pair.first for pair in outcome.pairs} == {"a", "b"}


def test_very_slow_models_have_one_look(bench, named):
    """Calls of 6 s: one timed call a process, five pairs, no more."""
    outcome, _ = playoff(bench, named, SimModel(5.0), SimModel(6.0), noise=NoiseModel(spike_share=0.0))
    assert len(outcome.pairs) == 5
    assert {len(block.latencies_s) for pair in outcome.pairs for block in pair.a.blocks} == {1}


def test_tail_targets_look_later(bench, named):
    """The first look is at six pairs, each with the calls that p99 needs."""
    outcome, _ = playoff(
        bench, named, SimModel(0.02), SimModel(0.05), noise=QUIET, objective=Objective(target="latency_s.p99")
    )
    assert (outcome.verdict, len(outcome.pairs)) == ("WIN", 6)
    assert outcome.candidate.latency_s.p99 is not None
    assert outcome.candidate.latency_s.n >= 1000


def test_measurements_are_pooled_from_the_playoff(bench, named):
    """Both arms, all their processes."""
    outcome, _ = playoff(bench, named, SimModel(0.04), SimModel(0.05), noise=QUIET)
    calls = sum(len(block.latencies_s) for pair in outcome.pairs for block in pair.b.used_blocks())
    assert outcome.baseline.latency_s.n == calls
    assert outcome.baseline.latency_s.p50 == pytest.approx(0.05, rel=0.02)


def limited(path, operator, bound):
    """Return the p50 objective under one constraint."""
    return Objective(constraints=(Constraint(path=path, operator=operator, bound=bound),))


def test_feasible_only_makes_no_speed_claim(bench, named):
    """The baseline needs too much memory, the candidate does not and is no faster."""
    outcome, _ = playoff(
        bench,
        named,
        SimModel(0.05, rss_bytes=100),
        SimModel(0.05, rss_bytes=300),
        noise=QUIET,
        objective=limited("peak_rss_bytes", "<=", 200.0),
    )
    assert outcome.verdict == "FEASIBLE_ONLY"


def test_a_constraint_shown_broken_stops_the_playoff(bench, named):
    """Faster, and too large."""
    outcome, _ = playoff(
        bench, named, SimModel(0.02, rss_bytes=300), SimModel(0.05), objective=limited("peak_rss_bytes", "<=", 200.0)
    )
    assert (outcome.verdict, len(outcome.pairs)) == ("NO_WORTHWHILE_WIN", 5)
    assert [notice.code for notice in outcome.notices if "constraint" in notice.code] == ["constraint_broken"]


def test_a_constraint_exactly_met_holds(bench, named):
    """Equality is no violation."""
    outcome, _ = playoff(
        bench, named, SimModel(0.02, rss_bytes=200), SimModel(0.05), objective=limited("peak_rss_bytes", "<=", 200.0)
    )
    assert outcome.verdict == "WIN"


def test_a_fidelity_constraint_goes_by_its_figure(bench, named):
    """Measured in the search, once per numerics key."""
    poor = Fidelity(cosine_min=0.9, n=64, method="embedding")
    outcome, _ = playoff(
        bench,
        named,
        SimModel(0.02),
        SimModel(0.05),
        fidelity=poor,
        objective=limited("fidelity.cosine_min", ">=", 0.99),
    )
    assert outcome.verdict == "NO_WORTHWHILE_WIN"


def test_an_unmeasured_constraint_is_not_taken_for_kept(bench, named):
    """No fidelity known: no WIN."""
    outcome, _ = playoff(
        bench, named, SimModel(0.02), SimModel(0.05), objective=limited("fidelity.cosine_min", ">=", 0.99)
    )
    assert outcome.verdict == "INCONCLUSIVE"
    assert "constraint_unresolved" in {notice.code for notice in outcome.notices}


def test_a_tail_constraint_brings_its_calls(bench, named):
    """A p99 limit on a p50 target: blocks are long enough to decide it, looks stay."""
    outcome, _ = playoff(
        bench, named, SimModel(0.02), SimModel(0.05), noise=QUIET, objective=limited("latency_s.p99", "<=", 0.04)
    )
    assert (outcome.verdict, len(outcome.pairs)) == ("WIN", 5)
    assert outcome.judgement.held == {"latency_s.p99 <= 0.04": "holds"}


def test_shown_harm_to_p99_vetoes(bench, named):
    """A tenth faster in the median, and every twentieth call ten times as slow."""
    harmful = SimModel(0.0045, tail_share=0.05, tail_factor=10.0)
    outcome, _ = playoff(bench, named, harmful, SimModel(0.005), noise=QUIET)
    assert (outcome.verdict, outcome.judgement.guard) == ("NO_WORTHWHILE_WIN", "harm")


def test_an_unresolved_p99_does_not_veto(bench, named):
    """Too few calls: the gain is claimed, and the doubt is said."""
    outcome, _ = playoff(bench, named, SimModel(0.04), SimModel(0.05), noise=QUIET)
    assert outcome.verdict == "WIN"
    assert "p99_not_resolved" in {notice.code for notice in outcome.notices}


def test_bench_measures_one_config_in_fresh_processes(bench, named):
    """Five processes and an interval over them."""
    rig = bench({"a": SimModel(0.05)}, noise=OK)
    outcome = run_bench(named("a"), rig, fidelity_samples=lambda _: 16)
    assert (len(outcome.runs), rig.runner.arms) == (5, [])
    assert outcome.cost.low < outcome.cost.mean < outcome.cost.high
    assert outcome.cost.mean == pytest.approx(0.05, rel=0.1)
    assert outcome.measurement.fidelity.n == 16


def test_bench_of_a_config_that_fails_is_a_trial_error(bench, named):
    """The caller says what failed."""
    with pytest.raises(TrialError, match="crash"):
        run_bench(named("a"), bench({"a": SimModel(0.05, fault="crash")}))


def test_the_same_seed_plays_the_same_playoff(bench, named):
    """Orders, noise and verdict repeat; another seed differs."""
    first, again, other = (
        playoff(bench, named, SimModel(0.049), SimModel(0.05), noise=OK, seed=seed)[0].d for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other


def test_swapping_the_arms_never_lets_both_win(bench, named):
    """Two percent apart on a rough host: at most one of the two is called faster."""
    verdicts = [
        playoff(bench, named, SimModel(a), SimModel(b), noise=ROUGH, seed=5)[0].verdict
        for a, b in ((0.049, 0.05), (0.05, 0.049))
    ]
    assert verdicts.count("WIN") < 2
