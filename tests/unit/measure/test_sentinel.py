"""The sentinel loop and the class of a host."""

import numpy as np
import pytest

from tuner.measure.sentinel import coefficient_of_variation, host_class, run_sentinel


@pytest.mark.parametrize(("sd", "name"), [(0.005, "quiet"), (0.02, "ok"), (0.05, "noisy"), (0.2, "hostile")])
def test_classes(sd, name):
    """Limits 1%, 3% and 8% of the coefficient of variation."""
    samples = 0.013 * (1 + sd * np.tile([-1.0, 1.0], 25))
    assert host_class(samples) == name


def test_one_sample_has_no_variation():
    """Nothing to compare with."""
    assert coefficient_of_variation([0.01]) == 0.0


def test_sentinel_returns_one_figure_a_loop():
    """A clock that ticks 1 ms a look makes every loop 1 ms."""
    ticks = iter(range(0, 10**12, 10**6))
    assert run_sentinel(4, sweep_bytes=4096, clock_ns=lambda: next(ticks)) == [0.001] * 4
