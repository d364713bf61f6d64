"""What it means for a profile that the host or its libraries changed; it opens nothing and changes nothing.

Consequences, strongest first: ``refuse`` (the best is not served, the fallback is), ``fallback`` (the fallback is
served until the profile is checked again), ``recheck`` (served, speed and accuracy to be verified), ``adapt``
(served with other CPU ids or counts), ``warn``, ``ignore``.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import Field

from tuner.records.base import Record
from tuner.records.hardware import Host, compute_flags

Consequence = Literal["refuse", "fallback", "recheck", "adapt", "warn", "ignore"]
CONSEQUENCES: tuple[Consequence, ...] = ("refuse", "fallback", "recheck", "adapt", "warn", "ignore")

_HARMLESS = frozenset({"numpy", "scipy", "psutil", "pydantic", "optuna", "sqlalchemy", "rich", "cyclopts", "tuner"})
_FIELDS: dict[str, tuple[Consequence, str]] = {
    "architecture": ("refuse", "another instruction set architecture: nothing that was built runs here"),
    "vendor": ("recheck", "another vendor's CPU: other kernels are picked"),
    "cpu_family": ("recheck", "another CPU family: other kernels are picked"),
    "cpu_model_number": ("recheck", "another CPU model: speeds may rank differently"),
    "cpu_model": ("recheck", "another CPU model: speeds may rank differently"),
    "thp": ("recheck", "transparent huge pages are in another state: large allocations run at another speed"),
    "kernel": ("warn", "another kernel"),
    "microcode": ("warn", "another microcode"),
    "stepping": ("warn", "another stepping of the same CPU"),
    "hypervisor": ("warn", "another hypervisor"),
    "governor": ("warn", "another frequency governor"),
    "turbo": ("warn", "frequencies above nominal were switched"),
    "numa_balancing": ("warn", "automatic NUMA balancing was switched"),
    "clocksource": ("warn", "another clock source: timing calls cost more or less"),
    "max_mhz": ("ignore", "another highest frequency"),
    "hostname": ("ignore", "another host of the same kind"),
}


class Needs(Record):
    """What a config needs of a host.

    Attributes:
        n_cpus: CPUs of its mask or threads of its pools, whichever is more.
        peak_rss_bytes: Peak memory as measured, None if unknown.
        is_isa_bound: Whether it depends on the instruction set: quantized, of reduced precision, or compiled.
        is_pinned: Whether its placement sets a mask.
    """

    n_cpus: int = Field(default=1, ge=1)
    peak_rss_bytes: int | None = None
    is_isa_bound: bool = True
    is_pinned: bool = False


class Difference(Record):
    """One field that changed, and what follows."""

    field: str
    then: bool | int | float | str | None
    now: bool | int | float | str | None
    consequence: Consequence
    detail: str


def compare_hosts(then: Mapping[str, object], now: Host, needs: Needs | None = None) -> tuple[Difference, ...]:
    """Return what differs between a profile's ``hardware`` and this host, strongest consequence first.

    Keys that `then` lacks or that have another type there (an older or a foreign profile) are left out, but for the
    flags that a quantized or bfloat16 config needs.
    """
    needs = needs or Needs()
    found = [
        *_isa(_strings(then.get("isa")), now, needs),
        *_cpus(then, now, needs),
        *_memory(then, now, needs),
        *_layout(then, now),
        *_plain(then, now),
    ]
    if needs.is_pinned and not now.is_pinning_available:
        text = "this system sets no masks: threads run where the scheduler puts them"
        found.append(_difference("is_pinning_available", True, False, "warn", text))
    return tuple(sorted(found, key=lambda difference: CONSEQUENCES.index(difference.consequence)))


def compare_software(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[Difference, ...]:
    """Return what differs between versions by name, strongest first; names that only `now` has do not matter."""
    found = []
    for name, version in sorted(then.items()):
        installed = now.get(name)
        if installed == version:
            continue
        field = f"software.{name}"
        if installed is None:
            text = f"{name} is not installed here; install {name}=={version}"
            found.append(_difference(field, version, None, "warn" if name in _HARMLESS else "refuse", text))
        elif name in _HARMLESS or _release(version) == _release(installed):
            found.append(_difference(field, version, installed, "warn", f"{name} {version} became {installed}"))
        else:
            text = f"{name} {version} became {installed}: outputs may differ; the fallback serves until rechecked"
            found.append(_difference(field, version, installed, "fallback", text))
    return tuple(sorted(found, key=lambda difference: CONSEQUENCES.index(difference.consequence)))


def strongest(differences: Iterable[Difference]) -> Consequence | None:
    """Return the strongest consequence; None without a difference."""
    ranks = [CONSEQUENCES.index(difference.consequence) for difference in differences]
    return CONSEQUENCES[min(ranks)] if ranks else None


def _isa(then: tuple[str, ...], now: Host, needs: Needs) -> list[Difference]:
    """Compare the flags that engines choose kernels by."""
    if not then:
        text = "the profile does not name the flags of the CPU that it was made on: outputs and speed are to be checked"
        return [_difference("isa", None, None, "recheck", text)] if needs.is_isa_bound and now.compute_isa else []
    before, here = set(compute_flags(then)), set(now.compute_isa)
    lost, gained = " ".join(sorted(before - here)), " ".join(sorted(here - before))
    found = []
    if lost and needs.is_isa_bound:
        text = f"this CPU lacks {lost}: quantized, bf16 and compiled artifacts are refused, the fallback serves"
        found.append(_difference("isa", lost, None, "refuse", text))
    elif lost:
        found.append(
            _difference("isa", lost, None, "recheck", f"this CPU lacks {lost}: float32 runs, at another speed")
        )
    if gained:
        text = f"this CPU adds {gained}: other kernels are picked, outputs and speed are to be checked again"
        found.append(_difference("isa", None, gained, "recheck", text))
    return found


def _cpus(then: Mapping[str, object], now: Host, needs: Needs) -> list[Difference]:
    """Compare how many CPUs there are with how many are needed."""
    before = then.get("cpu_budget")
    n_then = before if isinstance(before, int) else None
    if now.cpu_budget < needs.n_cpus:
        text = (
            f"the config needs {needs.n_cpus} CPUs, {now.cpu_budget} are granted here (bound by {now.bound_by}); "
            f"loaded without strict it is adapted to {now.cpu_budget}, or run autotune retune"
        )
        return [_difference("cpu_budget", n_then, now.cpu_budget, "refuse", text)]
    if n_then is not None and n_then != now.cpu_budget:
        text = f"CPU ids are chosen anew among {now.n_allowed}; another thread count may be better: autotune retune"
        return [_difference("cpu_budget", n_then, now.cpu_budget, "adapt", text)]
    quota = then.get("quota_cpus")
    if "quota_cpus" in then and quota != now.quota_cpus:
        n_quota = float(quota) if isinstance(quota, (int, float)) else None
        return [
            _difference("quota_cpus", n_quota, now.quota_cpus, "adapt", "another CPU quota with room for the config")
        ]
    return []


def _memory(then: Mapping[str, object], now: Host, needs: Needs) -> list[Difference]:
    """Compare the room in memory with the peak."""
    room = now.memory_budget_bytes
    if needs.peak_rss_bytes is None or room is None or room >= needs.peak_rss_bytes:
        return []
    before = then.get("memory_budget_bytes")
    text = (
        f"the config took {needs.peak_rss_bytes} bytes, {room} are free here (bound by {now.memory_bound_by}); "
        f"raise the memory limit or tune with --max peak_rss_bytes={room}"
    )
    return [_difference("memory_budget_bytes", before if isinstance(before, int) else None, room, "refuse", text)]


def _layout(then: Mapping[str, object], now: Host) -> list[Difference]:
    """Compare cores, sockets, nodes and kinds of core by their counts; ids do not matter."""
    here = now.model_dump(mode="json")
    texts = {
        "physical_cores": "another number of physical cores: threads share cores differently",
        "packages": "another number of sockets",
        "cpu_nodes": "another number of memory nodes",
        "core_classes": "another number of kinds of core",
    }
    found = []
    for field, text in texts.items():
        before, after = then.get(field), here[field]
        if isinstance(before, (list, tuple, dict)) and len(before) != len(after):
            found.append(_difference(field, len(before), len(after), "recheck", text))
    return found


def _plain(then: Mapping[str, object], now: Host) -> list[Difference]:
    """Compare the fields of the table; one that either side does not know is no difference."""
    found = []
    for field, (consequence, text) in _FIELDS.items():
        before, after = then.get(field), getattr(now, field, None)
        if before is None or after is None or not isinstance(before, (bool, int, float, str)) or before == after:
            continue
        found.append(_difference(field, before, after, consequence, text))
    return found


def _difference(
    field: str,
    then: bool | float | str | None,
    now: bool | float | str | None,
    consequence: Consequence,
    detail: str,
) -> Difference:
    """Return a difference."""
    return Difference(field=field, then=then, now=now, consequence=consequence, detail=detail)


def _strings(value: object) -> tuple[str, ...]:
    """Return a list of strings, empty for anything else."""
    return tuple(entry for entry in value if isinstance(entry, str)) if isinstance(value, (list, tuple)) else ()


def _release(version: str) -> tuple[str, ...] | str:
    """Return major and minor of a version; all of it if it has none (such a change is never a patch)."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return match.groups() if match else version
