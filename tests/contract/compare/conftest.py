"""Whole comparisons on simulated hosts, many at a time: what share of them claims what."""

import numpy as np
import pytest

from tuner.compare.anchor import Anchor
from tuner.compare.pairs import lone_blocks
from tuner.compare.playoff import run_playoff
from tuner.compare.race import run_race
from tuner.compare.rig import Rig
from tuner.compare.trial import run_trial
from tuner.measure.plan import BlockPlan
from tuner.records.config import Config
from tuner.records.workload import Objective
from tuner.replay.script import SimModel
from tuner.replay.simhost import SimHost


def named(name):
    """Return the config of a name."""
    return Config(backend="fake", session={"name": name})


def bench(models, *, noise, seed):
    """Return a rig on a simulated host of this noise."""
    host = SimHost(lambda config: models[str(config.session["name"])], seed=seed, noise=noise)
    return Rig(host, Objective(), seed=seed, budget_s=900.0)


def playoff_outcomes(noise, gain, seeds):
    """Return playoffs of a candidate whose true speed-up is `gain`, one per seed."""
    models = {"a": SimModel(0.05 / gain), "b": SimModel(0.05)}
    return [run_playoff(named("a"), named("b"), bench(models, noise=noise, seed=seed)) for seed in seeds]


def sequential_claims(noise, seeds):
    """Return how often A then B, one process and 40 blocks each, calls equal arms more than 1% apart in A's favour."""
    claims = 0
    for seed in seeds:
        rig = bench({"x": SimModel(0.05)}, noise=noise, seed=seed)
        medians = []
        for side in ("a", "b"):
            arm, run = rig.start(named("x"), side)
            lone_blocks(rig, arm, run, BlockPlan(n=10), 40)
            arm.close()
            medians.append(float(np.median([np.median(block.latencies_s) for block in run.used_blocks()])))
        claims += medians[1] / medians[0] > 1.01
    return claims


def pipeline_outcomes(noise, seeds, n_aliases=8):
    """Return playoffs at the end of trials and a race over aliases of one config: the winner is luck alone."""
    outcomes = []
    for seed in seeds:
        rig = bench({str(i): SimModel(0.05) for i in range(n_aliases + 1)}, noise=noise, seed=seed)
        anchor = Anchor(named("0"), rig)
        trials = [run_trial(named(str(i)), anchor, rig) for i in range(1, n_aliases + 1)]
        ranked = sorted((trial for trial in trials if trial.state == "measured"), key=lambda trial: trial.value)
        finalists = [trial.config for trial in ranked[:3]]
        race = run_race(finalists, anchor, rig, max_rounds=3)
        anchor.release()
        outcomes.append(run_playoff(finalists[race.ranking[0]], named("0"), rig))
    return outcomes


@pytest.fixture(name="playoff_outcomes")
def _playoff_outcomes():
    return playoff_outcomes


@pytest.fixture(name="sequential_claims")
def _sequential_claims():
    return sequential_claims


@pytest.fixture(name="pipeline_outcomes")
def _pipeline_outcomes():
    return pipeline_outcomes
