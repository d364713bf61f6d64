"""Bench: one configuration measured in fresh processes, by itself; it compares nothing and claims nothing."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.compare.arms import Run
from tuner.compare.pairs import ArmFailed, lone_blocks
from tuner.compare.pooling import measurement_of
from tuner.compare.rig import Rig
from tuner.compare.targets import run_cost
from tuner.measure.stats import Interval, mean_interval
from tuner.records.config import Config
from tuner.records.measurement import Measurement

PROCESSES = 5


@dataclass(frozen=True)
class BenchOutcome:
    """Figures of one configuration.

    Attributes:
        cost: Mean and 95% interval over processes of the target's figure (seconds, bytes; lower is better).
    """

    measurement: Measurement
    cost: Interval
    runs: tuple[Run, ...]


def run_bench(
    config: Config, rig: Rig, *, processes: int = PROCESSES, fidelity_samples: Callable[[float], int] | None = None
) -> BenchOutcome:
    """Measure `config` in `processes` fresh processes, four blocks each; dirty blocks are redone.

    To compare two configurations use `run_playoff` with looks=(5,).

    Args:
        config: What to measure.
        rig: The bench.
        processes: Fresh processes.
        fidelity_samples: Given the seconds of a call, how many outputs to compare in the first process; None: none.

    Raises:
        TrialError: It failed.
    """
    runs: list[Run] = []
    fidelity = None
    for number in range(processes):
        arm, run = rig.start(config, "a")
        try:
            plan = rig.plan(run.call_s, run.call_s)
            lone_blocks(rig, arm, run, plan, plan.blocks)
            if fidelity_samples is not None and number == 0:
                fidelity = rig.check_fidelity(arm, fidelity_samples(run.call_s)).fidelity
        except ArmFailed as failed:
            raise failed.error from failed
        finally:
            arm.close()
        runs.append(run)
    measurement = measurement_of(
        runs, items_per_batch=rig.items_per_batch, fidelity=fidelity, low_confidence=rig.gate.is_open
    )
    return BenchOutcome(measurement, mean_interval([run_cost(rig.target, run) for run in runs], 0.025), tuple(runs))
