"""`doctor`: audits host, libraries, compilers and permissions, each finding with a remedy; it changes nothing."""

import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median, stdev
from typing import Literal, cast

from tuner.artifacts.places import cache_directory
from tuner.artifacts.store import Store
from tuner.backends.base import Backend
from tuner.errors import TrialError, TunerError
from tuner.hardware import libraries
from tuner.hardware.detection import detect
from tuner.measure.sentinel import coefficient_of_variation, host_class
from tuner.measure.stats import resolvable_gain
from tuner.plugins import entry_points_of, plugin
from tuner.records.base import Record
from tuner.records.hardware import Host
from tuner.runner.local import LocalRunner
from tuner.tuning.engines import HIDDEN_BACKENDS

State = Literal["ok", "warn", "bad"]
PROCESSES = 6
REPEATS = 40
PAIR_S = 12.0
LOOKS = (5, 8, 12)


class Finding(Record):
    """One thing looked at; `bad` means that tuning cannot work."""

    name: str
    state: State
    detail: str
    remedy: str | None = None


class Diagnosis(Record):
    """What `doctor` found.

    Attributes:
        host_class: ``quiet``, ``ok``, ``noisy`` or ``hostile``, None where no worker runs.
        resolvable: Smallest gain (ratio - 1) that a playoff resolves with 80% power, by process pairs.
        can_tune: False if something is ``bad``.
    """

    host_class: str | None
    variation: float | None
    resolvable: dict[str, float]
    findings: tuple[Finding, ...]
    can_tune: bool


def diagnose(cache_dir: str | None = None, root: Path = Path("/")) -> Diagnosis:
    """Look at everything that tuning needs; runs a sentinel in a few workers (a few seconds)."""
    host = detect(root)
    findings = [*host_findings(host), *quiet_findings(root), *engine_findings(), *tool_findings()]
    cache = cache_directory(cache_dir)
    samples: list[tuple[float, ...]] = []
    try:
        store = Store(cache)
        findings.append(Finding(name="cache", state="ok", detail=f"{cache} can be written"))
        samples = run_sentinels(host, store)
        findings.append(Finding(name="workers", state="ok", detail="fresh worker processes start and answer"))
    except TunerError as error:
        findings.append(Finding(name="cache", state="bad", detail=str(error), remedy="--cache-dir DIR"))
    except TrialError as error:
        remedy = "see limits on processes and memory (ulimit -a, pids.max)"
        findings.append(Finding(name="workers", state="bad", detail=f"no worker runs here: {error}", remedy=remedy))
    whole = [each for one in samples for each in one]
    return Diagnosis(
        host_class=host_class(whole) if whole else None,
        variation=coefficient_of_variation(whole) if whole else None,
        resolvable=resolvable_gains(samples),
        findings=tuple(findings),
        can_tune=all(finding.state != "bad" for finding in findings),
    )


def run_sentinels(host: Host, store: Store) -> list[tuple[float, ...]]:
    """Run the sentinel in several fresh workers.

    Raises:
        TrialError: No worker runs.
    """
    with tempfile.TemporaryDirectory(prefix="doctor-", dir=store.root) as work:
        runner = LocalRunner(
            host=host, artifact_of=lambda _: store.root, prepared=store.root, work=Path(work), cache_dir=store.root
        )
        return [runner.sentinel(REPEATS) for _ in range(PROCESSES)]


def resolvable_gains(samples: list[tuple[float, ...]]) -> dict[str, float]:
    """Return the smallest resolvable gain by number of process pairs, from the spread of the sentinel's processes.

    A pair's log-ratio has the variance of two processes; the floor of 1% is what models add to a bare loop.
    """
    if len(samples) < 3:  # noqa: PLR2004 - no spread from fewer
        return {}
    spread = stdev(math.log(median(one)) for one in samples)
    pair_sd = max(0.01, math.sqrt(2) * spread)
    gains = {f"{pairs} pairs": resolvable_gain(pair_sd, pairs) for pairs in LOOKS}
    return {name: gain for name, gain in gains.items() if gain is not None}


def host_findings(host: Host) -> Iterator[Finding]:
    """Yield what the host says of itself."""
    text = f"{host.cpu_budget} CPUs to plan for, bound by {host.bound_by}"
    yield Finding(name="cpus", state="ok", detail=text)
    for notice in host.notices:
        yield Finding(name=notice.code, state="warn", detail=notice.detail, remedy=notice.remedy)
    if host.turbo:
        remedy = "fix the frequency if you own the machine; else trust ratios, not single figures"
        yield Finding(name="turbo", state="warn", detail="frequencies above nominal come and go", remedy=remedy)
    if host.governor not in (None, "performance"):
        remedy = "cpupower frequency-set -g performance (root)"
        yield Finding(name="governor", state="warn", detail=f"the frequency governor is {host.governor}", remedy=remedy)
    if host.clocksource not in (None, "tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"):
        yield Finding(
            name="clock", state="warn", detail=f"clock source {host.clocksource} is slow", remedy="tsc is best"
        )
    if not host.is_pinning_available:
        yield Finding(name="pinning", state="warn", detail="this system sets no CPU masks", remedy="tune on Linux")
    if host.is_memory_policy_permitted is False and len(host.membind_nodes) > 1:
        remedy = "allow CAP_SYS_NICE or the set_mempolicy call in the container"
        yield Finding(name="memory_policy", state="warn", detail="memory policies are refused", remedy=remedy)


def quiet_findings(root: Path) -> Iterator[Finding]:
    """Yield what would make the host quieter and what cannot be seen on it."""
    try:
        load = float((root / "proc/loadavg").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        load = 0.0
    if load > 0.5:  # noqa: PLR2004 - half a CPU is busy
        remedy = "stop other work on this machine while tuning"
        yield Finding(name="load", state="warn", detail=f"load average {load:.2f}: other programs run", remedy=remedy)
    if not (root / "proc/pressure/cpu").exists():
        detail = "no pressure information (PSI): neighbours show only in CPU times"
        yield Finding(name="psi", state="warn", detail=detail, remedy="boot with psi=1")


def engine_findings() -> Iterator[Finding]:
    """Yield which engines are installed."""
    found = 0
    for name in entry_points_of("tuner.backends"):
        if name in HIDDEN_BACKENDS:
            continue
        try:
            versions = cast("Backend", plugin("tuner.backends", name)).installed()
        except TunerError as error:
            yield Finding(name=name, state="warn", detail=str(error), remedy=f"reinstall {name}")
            continue
        if versions is None:
            detail = "not installed"
            yield Finding(name=name, state="warn", detail=detail, remedy="pip install 'autotune-cpu[all]'")
        else:
            found += 1
            text = ", ".join(f"{package} {version}" for package, version in versions.items())
            yield Finding(name=name, state="ok", detail=text)
    if not found:
        yield Finding(name="engines", state="bad", detail="no engine is installed", remedy="pip install onnxruntime")


def tool_findings() -> Iterator[Finding]:
    """Yield compilers, allocators and permissions."""
    compiler = os.environ.get("CXX") or next((name for name in ("c++", "g++", "clang++") if shutil.which(name)), None)
    if compiler is None:
        remedy = "apt-get install g++"
        yield Finding(name="compiler", state="warn", detail="no C++ compiler: nothing is compiled", remedy=remedy)
    else:
        yield Finding(name="compiler", state="ok", detail=compiler)
    allocators = libraries.installed()
    detail = ", ".join(sorted(allocators)) or "no further allocator or OpenMP runtime in system folders"
    more = None if allocators else "apt-get install libjemalloc2 libtcmalloc-minimal4 makes them searchable"
    yield Finding(name="allocators", state="ok", detail=detail, remedy=more)
