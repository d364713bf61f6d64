"""The host as one process may use it: CPUs, memory and what limits them; it reads nothing."""

import re
from typing import Literal

from pydantic import Field

from tuner.records.base import Record, digest_of
from tuner.records.measurement import Notice

_COMPUTE_FLAG = re.compile(
    r"sse\w*|ssse3|pni|fma|f16c|avx\w*|amx\w*|bmi[12]|popcnt|gfni|vaes|vpclmulqdq"  # x86
    r"|fp|fphp|asimd\w*|sve\w*|sme\w*|bf16|i8mm|atomics|neon"  # Arm
    r"|v|zv\w+|zfh\w*"  # RISC-V
)


class Package(Record):
    """A socket: all its online CPUs, and the same CPUs by die."""

    id: int
    cpus: tuple[int, ...]
    dies: tuple[tuple[int, ...], ...]


class NumaNode(Record):
    """A memory node: its online CPUs (none for a memory-only node) and its memory in bytes, None if unknown."""

    id: int
    cpus: tuple[int, ...]
    memory_bytes: int | None


class Cache(Record):
    """One data or unified cache and the allowed CPUs that share it; size in bytes, None if unknown."""

    level: int
    kind: Literal["data", "unified"]
    size_bytes: int | None
    cpus: tuple[int, ...]


class Host(Record):
    """What this process has; ids are the kernel's, a fact that cannot be known is None.

    Attributes:
        online_cpus: CPUs that the kernel schedules on.
        allowed_cpus: Online CPUs in both the affinity mask and the cpuset.
        physical_cores: Allowed CPUs by physical core (siblings together).
        quota_cpus: Smallest CPU quota of the cgroup chain in CPUs, None without one.
        cpu_budget: CPUs to plan for: min of the allowed CPUs and the whole part of the quota, at least 1.
        bound_by: The first of these that attains the budget; a cpuset counts as affinity.
        packages: Sockets of the machine with their online CPUs.
        numa_nodes: All memory nodes of the machine.
        cpu_nodes: Nodes with an allowed CPU.
        membind_nodes: Nodes with memory that this process may use.
        core_classes: Allowed CPUs by kind of core; one class named ``uniform`` where cores do not differ.
        isa: Flags as the kernel names them, held by every allowed CPU, sorted.
        memory_budget_bytes: What can be taken before a limit is met: least of cgroup room and MemAvailable.
        memory_bound_by: ``host`` (MemAvailable) or ``cgroup``.
        smt: Whether any online core runs more than one thread, None if the topology is unknown.
        virtualized: Whether a hypervisor is present, None if nothing tells.
        cgroup_version: Version of the hierarchy that holds the cpu controller.
        cgroup_layout: ``legacy`` (v1), ``unified`` (v2) or ``hybrid`` (both mounted).
        turbo: Whether frequencies above the nominal one are enabled.
        is_pinning_available: Whether masks can be set on this system.
        is_memory_policy_permitted: Outcome of a set_mempolicy probe, None if not probed.
        allocators: Names of the memory allocators in system library folders, which may be preloaded.
        openmp_runtimes: Names of the OpenMP runtimes there.
        has_compiler: Whether a C++ compiler is found (CXX, else g++), None if not looked for.
        fingerprint: sha256 over the facts whose change refuses a profile or has it checked again (`identity`).
    """

    online_cpus: tuple[int, ...]
    allowed_cpus: tuple[int, ...] = Field(min_length=1)
    physical_cores: tuple[tuple[int, ...], ...]
    quota_cpus: float | None
    cpu_budget: int = Field(ge=1)
    bound_by: Literal["online", "affinity", "quota"]
    packages: tuple[Package, ...]
    numa_nodes: tuple[NumaNode, ...]
    cpu_nodes: tuple[int, ...]
    membind_nodes: tuple[int, ...]
    core_classes: dict[str, tuple[int, ...]]
    caches: tuple[Cache, ...]
    isa: tuple[str, ...]
    memory_budget_bytes: int | None
    memory_bound_by: Literal["host", "cgroup"] | None
    smt: bool | None
    virtualized: bool | None
    cgroup_version: Literal[1, 2] | None
    notices: tuple[Notice, ...] = ()
    fingerprint: str = ""

    cgroup_layout: Literal["legacy", "unified", "hybrid"] | None = None
    architecture: str | None = None
    vendor: str | None = None
    cpu_model: str | None = None
    cpu_family: str | None = None
    cpu_model_number: str | None = None
    stepping: str | None = None
    microcode: str | None = None
    max_mhz: float | None = None
    kernel: str | None = None
    hypervisor: str | None = None
    memory_total_bytes: int | None = None
    swap_total_bytes: int | None = None
    thp: str | None = None
    governor: str | None = None
    turbo: bool | None = None
    numa_balancing: bool | None = None
    clocksource: str | None = None
    is_pinning_available: bool = True
    is_memory_policy_permitted: bool | None = None
    allocators: tuple[str, ...] = ()
    openmp_runtimes: tuple[str, ...] = ()
    has_compiler: bool | None = None

    @property
    def n_allowed(self) -> int:
        """Number of allowed CPUs."""
        return len(self.allowed_cpus)

    @property
    def n_physical_cores(self) -> int:
        """Number of physical cores with an allowed CPU."""
        return len(self.physical_cores)

    @property
    def n_packages(self) -> int:
        """Number of sockets with an allowed CPU."""
        allowed = set(self.allowed_cpus)
        return sum(1 for package in self.packages if allowed & set(package.cpus))

    @property
    def n_cpu_nodes(self) -> int:
        """Number of memory nodes with an allowed CPU."""
        return len(self.cpu_nodes)

    @property
    def last_level_caches(self) -> tuple[Cache, ...]:
        """The outermost cache of every allowed CPU, each once."""
        outermost: dict[int, Cache] = {}
        for cache in sorted(self.caches, key=lambda cache: cache.level):
            outermost.update(dict.fromkeys(cache.cpus, cache))
        return tuple(dict.fromkeys(outermost[cpu] for cpu in sorted(outermost)))

    @property
    def compute_isa(self) -> tuple[str, ...]:
        """The flags that decide which kernels an engine picks."""
        return compute_flags(self.isa)

    def identity(self) -> dict[str, object]:
        """Return the facts under `fingerprint`: no ids, names of hosts, clock rates, kernel or microcode."""
        allowed = set(self.allowed_cpus)
        return {
            "architecture": self.architecture,
            "vendor": self.vendor,
            "cpu_model": self.cpu_model,
            "cpu_family": self.cpu_family,
            "cpu_model_number": self.cpu_model_number,
            "compute_isa": self.compute_isa,
            "n_allowed": self.n_allowed,
            "n_physical_cores": self.n_physical_cores,
            "quota_cpus": self.quota_cpus,
            "cpu_budget": self.cpu_budget,
            "n_packages": self.n_packages,
            "node_sizes": [len(allowed & set(node.cpus)) for node in self.numa_nodes],
            "core_classes": {name: len(cpus) for name, cpus in self.core_classes.items()},
            "thp": self.thp,
        }

    def with_fingerprint(self) -> "Host":
        """Return the same host with `fingerprint` set from `identity`."""
        return self.model_copy(update={"fingerprint": digest_of(self.identity())})


def compute_flags(isa: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the kernel's flags that engines choose kernels by, sorted."""
    return tuple(sorted(flag for flag in isa if _COMPUTE_FLAG.fullmatch(flag)))
