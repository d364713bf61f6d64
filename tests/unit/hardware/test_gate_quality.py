"""How well telemetry and gate together tell disturbed blocks, counters rounded as the kernel rounds them."""

import math
from pathlib import Path

import numpy as np
import pytest

from tuner.hardware.noise import CpuTicks, Snapshot, TelemetryReader
from tuner.measure.gate import dirty_reasons

TICKS_PER_S = 100


def share_refused(tmp_path: Path, *, wall_s: float, n_cpus: int, steal: float, foreign: float, n: int = 2000) -> float:
    """Return the share of blocks that the gate refuses when every counter is rounded down to ticks."""
    rng = np.random.default_rng(7)
    reader = TelemetryReader(tmp_path, range(n_cpus), 42, clock=lambda: 0.0, slept=lambda: None)
    refused = 0
    for _ in range(n):
        stolen, theirs = (rng.gamma(20, mean / 20) if mean else 0.0 for mean in (steal, foreign))
        mine = 0.97 * (1 - stolen - theirs)
        shares = {"own_user": 0.9 * mine, "own_system": 0.1 * mine, "theirs": theirs, "steal": stolen}
        start = {name: rng.random() for name in shares}

        def snapshot(at_s: float, shares: dict[str, float] = shares, start: dict[str, float] = start) -> Snapshot:
            ticks = {name: start[name] + share * at_s * n_cpus * TICKS_PER_S for name, share in shares.items()}
            whole = {name: math.floor(value) for name, value in ticks.items()}
            busy = math.floor(ticks["own_user"] + ticks["theirs"]) + math.floor(ticks["own_system"])
            own = whole["own_user"] + whole["own_system"]
            return Snapshot(at_s, None, CpuTicks(busy, whole["steal"]), own, 0, 0, None, None)

        refused += bool(dirty_reasons(reader.delta(snapshot(0.0), snapshot(wall_s))))
    return refused / n


@pytest.mark.parametrize(("wall_s", "n_cpus"), [(0.5, 2), (0.6, 1), (1.0, 4)])
def test_five_percent_steal_is_caught(tmp_path, wall_s, n_cpus):
    """In at least 95% of blocks."""
    assert share_refused(tmp_path, wall_s=wall_s, n_cpus=n_cpus, steal=0.05, foreign=0.0) >= 0.95


@pytest.mark.parametrize(("wall_s", "n_cpus"), [(0.5, 2), (0.6, 1), (1.0, 4)])
def test_a_quiet_host_is_left_alone(tmp_path, wall_s, n_cpus):
    """Under 2% of blocks are redone where others use half a percent."""
    assert share_refused(tmp_path, wall_s=wall_s, n_cpus=n_cpus, steal=0.0, foreign=0.005) < 0.02


def test_a_busy_neighbour_on_our_cpus_is_caught(tmp_path):
    """Ten percent of our CPUs."""
    assert share_refused(tmp_path, wall_s=0.6, n_cpus=2, steal=0.0, foreign=0.10) >= 0.95
