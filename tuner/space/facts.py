"""Names and values that rules may use under ``host.``, ``model.`` and ``workload.``; it detects nothing itself."""

from collections.abc import Iterable

from tuner.records.hardware import Host
from tuner.records.model import ModelFacts
from tuner.records.workload import Workload

__all__ = ["FACTS", "facts_of_host", "facts_of_model", "facts_of_workload"]

FACTS: dict[str, tuple[str, ...]] = {
    "host": (
        "allowed_cpus",  # count
        "cpu_budget",  # min of allowed CPUs and floor(quota)
        "physical_cores",  # count with an allowed CPU
        "quota_cpus",
        "smt",
        "packages",  # count with an allowed CPU
        "package_cpus",  # allowed CPUs of the largest
        "package_cores",
        "numa_nodes",  # count with an allowed CPU
        "node_cpus",
        "node_cores",
        "cache_groups",  # count of last-level caches with an allowed CPU
        "cache_cpus",
        "cache_cores",
        "membind_nodes",  # count of nodes a memory policy may name
        "core_classes",  # count with an allowed CPU
        "performance_cpus",  # allowed CPUs of that class
        "performance_cores",
        "efficiency_cpus",
        "efficiency_cores",
        "isa",  # kernel flag names
        "architecture",
        "memory_budget_bytes",
        "thp",
        "virtualized",
        "is_pinning_available",
        "is_memory_policy_permitted",
        "allocators",  # names found in system library folders
        "openmp_runtimes",
        "has_compiler",  # of C++
    ),
    "model": (
        "kind",
        "task",
        "model_type",
        "architecture",
        "weight_bytes",
        "n_parameters",
        "max_length",
        "hidden_size",
        "n_layers",
        "is_convolutional",
    ),
    "workload": ("task", "batch_size", "concurrency", "new_tokens", "min_length", "max_length", "n_lengths"),
}


def facts_of_model(model: ModelFacts) -> dict[str, object]:
    """Return the facts under ``model.``; None where the files do not say."""
    return {name: getattr(model, name) for name in FACTS["model"]}


def facts_of_workload(workload: Workload) -> dict[str, object]:
    """Return the facts under ``workload.``; lengths in tokens, ``n_lengths`` counts distinct ones."""
    return {
        "task": workload.task,
        "batch_size": workload.batch_size,
        "concurrency": workload.concurrency,
        "new_tokens": workload.new_tokens,
        "min_length": min(workload.lengths, default=None),
        "max_length": max(workload.lengths, default=None),
        "n_lengths": len(set(workload.lengths)),
    }


def facts_of_host(host: Host) -> dict[str, object]:
    """Return the facts under ``host.``; None where the host does not tell."""
    allowed = set(host.allowed_cpus)
    cores = [set(core) for core in host.physical_cores]
    facts: dict[str, object] = {name: getattr(host, name, None) for name in FACTS["host"]}
    facts["allowed_cpus"] = host.n_allowed
    facts["physical_cores"] = host.n_physical_cores
    divisions = {
        ("packages", "package"): [package.cpus for package in host.packages],
        ("numa_nodes", "node"): [node.cpus for node in host.numa_nodes],
        ("cache_groups", "cache"): [cache.cpus for cache in host.last_level_caches],
    }
    for (count, prefix), groups in divisions.items():
        parts = _parts(groups, allowed)
        facts[count] = len(parts)
        facts[f"{prefix}_cpus"], facts[f"{prefix}_cores"] = _sizes(max(parts, key=len), cores)
    facts["membind_nodes"] = len(host.membind_nodes)
    facts["core_classes"] = len(host.core_classes)
    for name in ("performance", "efficiency"):
        facts[f"{name}_cpus"], facts[f"{name}_cores"] = _sizes(allowed & {*host.core_classes.get(name, ())}, cores)
    return facts


def _parts(groups: Iterable[Iterable[int]], allowed: set[int]) -> list[set[int]]:
    """Return the allowed CPUs by group, never an empty one; CPUs in no group form one of their own."""
    parts = [part for part in (allowed.intersection(group) for group in groups) if part]
    rest = allowed.difference(*parts)
    return [*parts, rest] if rest else parts


def _sizes(cpus: set[int], cores: list[set[int]]) -> tuple[int, int]:
    """Return how many CPUs there are and on how many cores."""
    return len(cpus), sum(1 for core in cores if core & cpus)
