"""What ``/proc/cpuinfo`` says of the CPUs on x86, Arm, POWER and RISC-V; its topology fields are not used.

Hypervisors invent "cpu cores" and Arm has no "core id", so topology comes from sysfs alone.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_ARM_VENDORS = {
    "0x41": "ARM",
    "0x42": "Broadcom",
    "0x43": "Cavium",
    "0x48": "HiSilicon",
    "0x4e": "NVIDIA",
    "0x51": "Qualcomm",
    "0x61": "Apple",
    "0x6d": "Microsoft",
    "0xc0": "Ampere",
}
_ARM_PARTS = {
    ("0x41", "0xd03"): "Cortex-A53",
    ("0x41", "0xd08"): "Cortex-A72",
    ("0x41", "0xd0b"): "Cortex-A76",
    ("0x41", "0xd0c"): "Neoverse-N1",
    ("0x41", "0xd40"): "Neoverse-V1",
    ("0x41", "0xd49"): "Neoverse-N2",
    ("0x41", "0xd4f"): "Neoverse-V2",
    ("0x41", "0xd84"): "Neoverse-V3",
    ("0x41", "0xd8e"): "Neoverse-N3",
    ("0xc0", "0xac3"): "Ampere-1",
    ("0x48", "0xd01"): "Kunpeng-920",
}


class CpuText(NamedTuple):
    """Fields by CPU id, and fields that stand outside any CPU's block."""

    cpus: Mapping[int, Mapping[str, str]]
    shared: Mapping[str, str]


class CpuModel(NamedTuple):
    """How the CPU names itself, as text; None where it does not."""

    architecture: str | None
    vendor: str | None
    name: str | None
    family: str | None
    number: str | None
    stepping: str | None
    microcode: str | None


def parse_cpuinfo(text: str) -> CpuText:
    """Return the fields of ``/proc/cpuinfo``; lines without a colon are left out."""
    cpus: dict[int, dict[str, str]] = {}
    shared: dict[str, str] = {}
    block = shared
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        key, value = key.strip(), value.strip()
        if not colon:
            block = block if line.strip() else shared
        elif key == "processor" and value.isdecimal() and value.isascii():
            block = cpus.setdefault(int(value[:9]), {})
        else:
            block[key] = value
    return CpuText(cpus, shared)


def isa_flags(text: CpuText, cpus: Iterable[int]) -> tuple[str, ...]:
    """Return the flags that all of `cpus` have, sorted; none if the file does not say."""
    lines = {_flags_of(text.cpus.get(cpu, {}), text.shared) for cpu in cpus} - {""}
    if not lines:
        return ()
    return tuple(sorted(frozenset.intersection(*(frozenset(line.split()) for line in lines))))


def _flags_of(fields: Mapping[str, str], shared: Mapping[str, str]) -> str:
    """Return the flags of one CPU as one text."""
    for key in ("flags", "Features"):
        if key in fields or key in shared:
            return fields.get(key, shared.get(key, ""))
    isa = fields.get("isa", shared.get("isa", ""))
    single, *multi = isa.removeprefix("rv64").removeprefix("rv32").split("_")
    return " ".join([*single, *multi])


def cpu_model(text: CpuText, cpus: tuple[int, ...]) -> CpuModel:
    """Return the names of the first of `cpus` that has any."""
    fields = {**text.shared, **next((text.cpus[cpu] for cpu in cpus if cpu in text.cpus), {})}
    implementer, part = fields.get("CPU implementer"), fields.get("CPU part")
    if implementer is not None:
        return CpuModel(
            architecture="aarch64" if "asimd" in fields.get("Features", "").split() else "arm",
            vendor=_ARM_VENDORS.get(implementer, implementer),
            name=_ARM_PARTS.get((implementer, part or "")) or fields.get("model name") or f"part {part}",
            family=fields.get("CPU architecture"),
            number=part,
            stepping=_joined(fields.get("CPU variant"), fields.get("CPU revision")),
            microcode=None,
        )
    architecture = None
    if "vendor_id" in fields and "flags" in fields:
        architecture = "x86_64" if "lm" in fields["flags"].split() else "i686"
    elif "isa" in fields:
        architecture = "riscv64" if fields["isa"].startswith("rv64") else "riscv32"
    return CpuModel(
        architecture=architecture,
        vendor=fields.get("vendor_id") or fields.get("mvendorid"),
        name=re.sub(r"\s+", " ", fields.get("model name") or fields.get("cpu") or fields.get("uarch") or "") or None,
        family=fields.get("cpu family"),
        number=fields.get("model"),
        stepping=fields.get("stepping") or fields.get("revision"),
        microcode=fields.get("microcode"),
    )


def _joined(variant: str | None, revision: str | None) -> str | None:
    """Return an Arm stepping as ``r1p2`` would be written, variant and revision."""
    return None if variant is None and revision is None else f"{variant}:{revision}"
