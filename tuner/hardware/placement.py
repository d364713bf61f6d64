"""Turns a placement policy into CPU ids of this host, always a subset of the allowed ones; it sets no mask."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from tuner.errors import UsageError
from tuner.records.config import Placement, ProcessSettings
from tuner.records.hardware import Host

Scope = Literal["all", "package", "node", "cache"]
Policy = Literal["none", "spread", "compact"]


class PlacementChoices(NamedTuple):
    """Values of the placement's dimensions that differ in effect on a host; one value means that it does nothing.

    Attributes:
        core_classes: None (any) first, then each kind where kinds differ.
        sizes: Masks worth trying first: one thread a core, all threads, the budget; ascending.
    """

    scopes: tuple[Scope, ...]
    policies: tuple[Policy, ...]
    core_classes: tuple[str | None, ...]
    sizes: tuple[int, ...]


def resolve(placement: Placement, host: Host) -> tuple[int, ...]:
    """Return the CPUs of `placement` on `host`, sorted.

    ``none`` keeps all allowed CPUs whatever else is said. Of several packages, nodes or caches the one with most
    usable CPUs is taken, the first of equals. ``spread`` takes one thread of every core before any second one, and
    goes round the last-level caches; ``compact`` takes siblings together and fills one cache after the other.

    Raises:
        UsageError: The scope holds fewer CPUs than asked for, or the host has no such kind of core.
    """
    return resolve_instances(placement, host, 1)[0]


def resolve_instances(placement: Placement, host: Host, n_instances: int) -> tuple[tuple[int, ...], ...]:
    """Return the CPUs of every instance, sorted; the sets are disjoint unless the policy is ``none``.

    Every instance lies in one package, node or cache of the scope; they are shared out so that each gets as many CPUs
    as possible. Instances within one of them get neighbouring CPUs, whole cores if there are enough; of these, `n_cpus`
    are taken by the policy (as many for each as all can have, when it is None).

    Raises:
        UsageError: As `resolve`, for all instances together.
    """
    if placement.policy == "none":
        return (host.allowed_cpus,) * n_instances
    within = groups(placement.scope, host, _of_class(placement.core_class, host))
    counts = [0] * len(within)
    for _ in range(n_instances):
        roomiest = max(range(len(within)), key=lambda index: len(within[index]) / (counts[index] + 1))
        counts[roomiest] += 1
    shares = [(group, count) for group, count in zip(within, counts, strict=True) if count]
    parts = [part for group, count in shares for part in _cut(group, count, placement.n_cpus or 1, host)]
    most = min(len(part) for part in parts)
    wanted = max(most, 1) if placement.n_cpus is None else placement.n_cpus
    if wanted > most:
        kind = f" of kind {placement.core_class}" if placement.core_class else ""
        asked = f"{wanted} CPUs" if n_instances == 1 else f"{n_instances} instances of {wanted} CPUs"
        raise UsageError(
            f"process.placement: {asked} asked for, but scope {placement.scope!r}{kind} holds "
            f"{max(len(group) for group in within)} here; lower n_cpus or instances, or widen the scope"
        )
    return tuple(tuple(sorted(_ordered(part, placement.policy, host)[:wanted])) for part in parts)


def memory_policy_text(process: ProcessSettings, host: Host) -> str | None:
    """Return the memory policy with the nodes of the mask, e.g. ``bind:0``; None for the system's own.

    Interleaving goes over all permitted nodes, binding over those of the mask's CPUs.

    Raises:
        UsageError: As `resolve`.
    """
    if process.memory_policy == "none":
        return None
    nodes = host.membind_nodes
    if process.memory_policy == "bind":
        cpus = set(resolve(process.placement, host))
        nodes = tuple(node.id for node in host.numa_nodes if cpus & set(node.cpus) and node.id in nodes) or nodes
    return f"{process.memory_policy}:{','.join(str(node) for node in nodes)}"


def _cut(cpus: tuple[int, ...], n_parts: int, least: int, host: Host) -> list[list[int]]:
    """Return equal parts of neighbouring CPUs: of whole cores if these hold `least` CPUs; the rest belongs to none."""
    line = _ordered(cpus, "compact", host)
    core_of = {cpu: rank for rank, core in enumerate(host.physical_cores) for cpu in core}
    cores: dict[int, list[int]] = {}
    for cpu in line:
        cores.setdefault(core_of[cpu], []).append(cpu)
    size = len(cores) // n_parts
    whole = [list(cores.values())[part * size : (part + 1) * size] for part in range(n_parts)]
    parts = [[cpu for core in part for cpu in core] for part in whole]
    if min(len(part) for part in parts) >= least:
        return parts
    size = len(line) // n_parts
    return [line[part * size : (part + 1) * size] for part in range(n_parts)]


def groups(scope: Scope, host: Host, cpus: Iterable[int] | None = None) -> tuple[tuple[int, ...], ...]:
    """Return `cpus` (all allowed ones if None) by package, node or last-level cache; never an empty group.

    CPUs of which the host does not know the group form one of their own.
    """
    left = set(host.allowed_cpus if cpus is None else cpus)
    sets: dict[Scope, list[tuple[int, ...]]] = {
        "all": [],
        "package": [package.cpus for package in host.packages],
        "node": [node.cpus for node in host.numa_nodes],
        "cache": [cache.cpus for cache in host.last_level_caches],
    }
    found = []
    for members in sets[scope]:
        group = tuple(sorted(left.intersection(members)))
        if group:
            found.append(group)
            left.difference_update(group)
    return (*found, tuple(sorted(left))) if left else tuple(found)


def choices(host: Host) -> PlacementChoices:
    """Return the values that differ in effect here, for a search space to keep."""
    n_allowed = host.n_allowed
    sizes = tuple(sorted({host.n_physical_cores, n_allowed, min(host.cpu_budget, n_allowed)}))
    if n_allowed == 1 or not host.is_pinning_available:
        return PlacementChoices(("all",), ("none",), (None,), sizes)
    scopes: list[Scope] = ["all"]
    seen = {groups("all", host)}
    names: tuple[Scope, ...] = ("package", "node", "cache")
    for scope in names:
        divided = groups(scope, host)
        if divided not in seen:
            seen.add(divided)
            scopes.append(scope)
    policies: tuple[Policy, ...] = ("none", "spread", "compact")
    if host.n_physical_cores == n_allowed and len(groups("cache", host)) == 1:
        policies = ("none", "spread")
    kinds = tuple(host.core_classes) if len(host.core_classes) > 1 else ()
    return PlacementChoices(tuple(scopes), policies, (None, *kinds), sizes)


def _of_class(core_class: str | None, host: Host) -> tuple[int, ...]:
    """Return the allowed CPUs of a kind of core."""
    if core_class is None:
        return host.allowed_cpus
    usable = tuple(sorted(set(host.core_classes.get(core_class, ())) & set(host.allowed_cpus)))
    if not usable:
        raise UsageError(
            f"process.placement.core_class: no {core_class!r} cores are allowed here; "
            f"there are {', '.join(sorted(host.core_classes))}"
        )
    return usable


def _ordered(cpus: Iterable[int], policy: Policy, host: Host) -> list[int]:
    """Return `cpus` in the order in which they are taken."""
    rank_of_class = {cpu: rank for rank, members in enumerate(host.core_classes.values()) for cpu in members}
    keys: dict[int, tuple[int, ...]] = {}
    for position, members in enumerate(_by_locality(cpus, host)):
        cores = [
            core for core in (tuple(cpu for cpu in core if cpu in members) for core in host.physical_cores) if core
        ]
        for core_rank, core in enumerate(cores):
            for thread_rank, cpu in enumerate(core):
                kind = rank_of_class.get(cpu, 0)
                spread = (thread_rank, kind, core_rank, position)
                keys[cpu] = spread if policy == "spread" else (kind, position, core_rank, thread_rank)
    return sorted(keys, key=lambda cpu: keys[cpu])


def _by_locality(cpus: Iterable[int], host: Host) -> list[set[int]]:
    """Return `cpus` by package, then node, then last-level cache."""
    parts: list[tuple[int, ...]] = [tuple(cpus)]
    scopes: tuple[Scope, ...] = ("package", "node", "cache")
    for scope in scopes:
        parts = [group for part in parts for group in groups(scope, host, part)]
    return [set(part) for part in parts]
