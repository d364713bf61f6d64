"""Telemetry from saved /proc trees."""

from pathlib import Path

import pytest

from tuner.hardware.noise import (
    TelemetryReader,
    cpu_ticks,
    involuntary_switches,
    pressure_some_us,
    process_ticks,
)

STAT = """cpu  100 0 50 1000 5 2 3 7 0 0
cpu0 60 1 30 500 3 1 2 4 0 0
cpu1 40 0 20 500 2 1 1 3 0 0
intr 12345
"""


def process(user=10, system=5, major=2):
    """Return /proc/<pid>/stat of a process whose name is awkward."""
    return f"42 (a) b (c) S 1 1 1 0 -1 0 100 0 {major} 0 {user} {system} 0 0 20 0 3 0 999 0 0\n"


def test_ticks_of_some_cpus():
    """User, nice, system, irq and softirq are busy; iowait and idle are not."""
    ticks = cpu_ticks(STAT, [0])
    assert (ticks.busy, ticks.steal) == (60 + 1 + 30 + 1 + 2, 4)


def test_no_mask_means_all_cpus():
    """Every line that has a number."""
    assert cpu_ticks(STAT, []).steal == 7


def test_a_kernel_without_steal_column():
    """Old kernels end before it."""
    ticks = cpu_ticks("cpu0 60 1 30 500 3 1 2\n", [0])
    assert (ticks.busy, ticks.steal) == (94, None)


def test_a_cpu_without_line_is_unknown():
    """Nothing is invented for a CPU that is not listed."""
    assert cpu_ticks(STAT, [0, 7]) is None
    assert cpu_ticks("", [0]) is None


def test_process_name_with_brackets():
    """Fields are counted after the last bracket."""
    assert process_ticks(process()) == (15, 2)
    assert process_ticks("") is None


def test_pressure_total():
    """Microseconds of the `some` line."""
    text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=123456\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n"
    assert pressure_some_us(text) == 123456
    assert pressure_some_us("") is None


def test_involuntary_switches():
    """From the status file."""
    assert involuntary_switches("voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t3\n") == 3
    assert involuntary_switches("") is None


class SavedHost:
    """A /proc tree whose counters are written anew."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now_s = 0.0
        self.slept_s: float | None = 0.0
        (root / "proc" / "42").mkdir(parents=True)

    def write(self, *, busy: int, steal: int = 0, own: int = 0, major: int = 0) -> None:
        """Set the counters of CPU 0 and of process 42, in ticks."""
        (self.root / "proc" / "stat").write_text(f"cpu0 {busy} 0 0 0 0 0 0 {steal} 0 0\n")
        (self.root / "proc" / "42" / "stat").write_text(process(own, 0, major))
        (self.root / "proc" / "42" / "status").write_text("nonvoluntary_ctxt_switches:\t0\n")

    def reader(self) -> TelemetryReader:
        """Return a reader of this host."""
        return TelemetryReader(self.root, (0,), 42, clock=lambda: self.now_s, slept=lambda: self.slept_s)

    def delta(self, before, after, wall_s=1.0):
        """Return the telemetry between two states one second apart."""
        self.write(**before)
        reader = self.reader()
        first = reader.read()
        self.write(**after)
        self.now_s += wall_s
        return reader.delta(first, reader.read())


@pytest.fixture
def saved(tmp_path):
    """Return a saved host."""
    return SavedHost(tmp_path)


def test_own_time_is_not_foreign(saved):
    """A worker that fills its CPU is alone on it."""
    assert saved.delta({"busy": 0}, {"busy": 100, "own": 100}).foreign_ratio == 0.0


def test_foreign_time_is_what_others_ran(saved):
    """Of 100 busy ticks 80 are ours: 19% foreign after the tick of rounding."""
    assert saved.delta({"busy": 0}, {"busy": 100, "own": 80}).foreign_ratio == pytest.approx(0.19)


def test_steal_ratio(saved):
    """Five ticks of a hundred."""
    assert saved.delta({"busy": 0}, {"busy": 95, "own": 95, "steal": 5}).steal_ratio == pytest.approx(0.05)


def test_major_faults_are_differences(saved):
    """Faults before the block do not count."""
    assert saved.delta({"busy": 0, "major": 7}, {"busy": 9, "major": 9}).major_faults == 2


def test_suspend_is_seen_in_the_other_clock(saved):
    """The boot-time clock runs on while the machine sleeps."""
    saved.write(busy=0)
    reader = saved.reader()
    first = reader.read()
    saved.slept_s = 60.0
    assert reader.delta(first, reader.read()).suspended_s == 60.0


def test_a_bare_host_has_nulls(tmp_path):
    """No /proc, no pressure, no control groups: unknown, not zero."""
    reader = TelemetryReader(tmp_path, (0,), 42, clock=lambda: 0.0, slept=lambda: None)
    seen = reader.delta(reader.read(), reader.read())
    known = {name for name, value in seen.model_dump().items() if value is not None}
    assert known == {"wall_s"}


def test_throttling_of_others(saved):
    """The group was stopped for half a second while we used little of its quota."""
    group = saved.root / "sys" / "fs" / "cgroup" / "job"
    group.mkdir(parents=True)
    (group / "cpu.max").write_text("100000 100000\n")
    (saved.root / "proc" / "42" / "cgroup").write_text("0::/job\n")
    (group / "cpu.stat").write_text("nr_throttled 0\nthrottled_usec 0\n")
    saved.write(busy=0)
    reader = saved.reader()
    first = reader.read()
    (group / "cpu.stat").write_text("nr_throttled 5\nthrottled_usec 500000\n")
    saved.now_s += 1.0
    saved.write(busy=100, own=30)
    seen = reader.delta(first, reader.read())
    assert (seen.throttled_s, seen.own_throttling) == (0.5, False)
    saved.write(busy=100, own=95)
    assert reader.delta(first, reader.read()).own_throttling is True
