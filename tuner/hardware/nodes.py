"""Memory (NUMA) nodes; a node is neither a socket nor a die, though it may coincide with one."""

from typing import NamedTuple

from tuner.hardware.lists import parse_cpu_list
from tuner.hardware.masks import status_field
from tuner.hardware.memory import meminfo_bytes
from tuner.hardware.tree import Tree
from tuner.records.hardware import NumaNode, Package

_NODES = "sys/devices/system/node"


class Nodes(NamedTuple):
    """All nodes, those with an allowed CPU, and those whose memory this process may use."""

    all: tuple[NumaNode, ...]
    with_cpus: tuple[int, ...]
    with_memory: tuple[int, ...]


def read_nodes(
    tree: Tree, online: tuple[int, ...], allowed: tuple[int, ...], mems: tuple[int, ...] | None, total_bytes: int | None
) -> Nodes:
    """Return the memory nodes.

    Args:
        tree: Where to read.
        online: Online CPUs.
        allowed: CPUs this process may use.
        mems: Nodes that the cpuset permits, used where the process status does not say; None for all.
        total_bytes: Memory of the machine, for a system without node directories.
    """
    names = [name for name in tree.children(_NODES) if name.startswith("node") and name[4:].isdecimal()]
    nodes = sorted((_node(tree, int(name[4:]), set(online)) for name in names), key=lambda node: node.id)
    if not nodes:
        nodes = [NumaNode(id=0, cpus=online, memory_bytes=total_bytes)]
    permitted = _permitted(tree, mems)
    usable = set(allowed)
    return Nodes(
        tuple(nodes),
        tuple(node.id for node in nodes if usable & set(node.cpus)),
        tuple(node.id for node in nodes if node.memory_bytes != 0 and (permitted is None or node.id in permitted)),
    )


def note_split_sockets(tree: Tree, packages: tuple[Package, ...], nodes: tuple[NumaNode, ...]) -> None:
    """Say so when a socket holds several nodes with CPUs."""
    n_nodes = sum(1 for node in nodes if node.cpus)
    if n_nodes > len(packages):
        tree.note(
            "sub_numa",
            f"{len(packages)} socket(s) show {n_nodes} memory nodes: a node is only a part of a socket here",
            "placements name package and node apart; both are searched",
        )


def _node(tree: Tree, number: int, online: set[int]) -> NumaNode:
    """Return one node."""
    cpus = tree.cpu_list(f"{_NODES}/node{number}/cpulist") or ()
    memory = meminfo_bytes(tree.read(f"{_NODES}/node{number}/meminfo") or "")
    return NumaNode(id=number, cpus=tuple(cpu for cpu in cpus if cpu in online), memory_bytes=memory.get("MemTotal"))


def _permitted(tree: Tree, mems: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return the nodes that Mems_allowed permits, else the cpuset's."""
    listed = status_field(tree.read("proc/self/status") or "", "Mems_allowed_list")
    if listed:
        try:
            return parse_cpu_list(listed)
        except ValueError as error:
            tree.odd_file("proc/self/status", f"Mems_allowed_list: {error}")
    return mems
