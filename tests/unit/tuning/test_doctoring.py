"""What `doctor` concludes, from figures and saved trees."""

import pytest

from tuner.measure.stats import resolvable_gain
from tuner.tuning.doctoring import quiet_findings, resolvable_gains


def test_a_steady_host_resolves_what_a_spread_of_one_percent_allows():
    """Processes that agree exactly still count 1% of spread, as models add it."""
    gains = resolvable_gains([(0.005,) * 10] * 6)
    assert gains == {f"{pairs} pairs": resolvable_gain(0.01, pairs) for pairs in (5, 8, 12)}


def test_more_pairs_resolve_less():
    """Twelve pairs see a smaller gain than five."""
    gains = resolvable_gains([(0.005 * factor,) * 10 for factor in (1.0, 1.02, 0.98, 1.05, 1.0, 0.97)])
    assert gains["12 pairs"] < gains["8 pairs"] < gains["5 pairs"]


def test_two_processes_have_no_spread_to_speak_of():
    """Under three processes nothing is concluded."""
    assert resolvable_gains([(0.005,), (0.005,)]) == {}


@pytest.mark.parametrize(("load", "expected"), [("0.10 0.1 0.1 1/80 1", []), ("3.20 2 1 4/80 1", ["load"])])
def test_other_work_is_named(tmp_path, load, expected):
    """A load average above half a CPU is a finding."""
    (tmp_path / "proc/pressure").mkdir(parents=True)
    (tmp_path / "proc/pressure/cpu").write_text("some avg10=0.00")
    (tmp_path / "proc/loadavg").write_text(load)
    assert [finding.name for finding in quiet_findings(tmp_path)] == expected


def test_missing_pressure_information_is_named(tmp_path):
    """Without PSI and without a load average only that is said."""
    assert [finding.name for finding in quiet_findings(tmp_path)] == ["psi"]
