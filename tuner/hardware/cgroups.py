"""Finds the control-group directories that bind this process; it reads no limit.

Version 1, version 2 and both at once (hybrid) are told apart per controller, never per host: the version that holds
the controller is the one that counts. Source: cgroups(7); proc_pid_mountinfo(5); Linux ``admin-guide/cgroup-v2.rst``.
"""

import re
from typing import Literal, NamedTuple

from tuner.hardware.tree import Tree

_DEFAULT = "sys/fs/cgroup"


class Membership(NamedTuple):
    """One line of ``/proc/self/cgroup``; no controllers for version 2."""

    controllers: frozenset[str]
    path: str


class Mount(NamedTuple):
    """A mounted hierarchy: `root` is the cgroup shown at `point` (both absolute, `point` without leading slash)."""

    version: Literal[1, 2]
    controllers: frozenset[str]
    root: str
    point: str


class Chain(NamedTuple):
    """Directories of one controller: the process's own cgroup first, then every visible ancestor."""

    version: Literal[1, 2]
    directories: tuple[str, ...]


class ControlGroups:
    """The control groups of one process."""

    def __init__(self, tree: Tree) -> None:
        text = tree.read("proc/self/cgroup")
        self._tree = tree
        self._memberships = None if text is None else parse_memberships(text)
        mounts = parse_mounts(tree.read("proc/self/mountinfo") or "")
        self._mounts = [mount for mount in mounts if tree.is_directory(mount.point)] or _default_mounts(tree)

    @property
    def layout(self) -> Literal["legacy", "unified", "hybrid"] | None:
        """What is mounted: version 1, version 2, both, or (None) nothing."""
        versions = {mount.version for mount in self._mounts}
        if len(versions) > 1:
            return "hybrid"
        return {1: "legacy", 2: "unified"}[versions.pop()] if versions else None  # type: ignore[return-value]

    def chain(self, controller: str) -> Chain | None:
        """Return the directories where `controller` limits this process; None if no hierarchy holds it."""
        first = [mount for mount in self._mounts if mount.version == 1 and controller in mount.controllers]
        path = self._path(controller)
        if first and path is not None:
            return Chain(1, self._directories(first, path))
        second = [mount for mount in self._mounts if mount.version == 2]  # noqa: PLR2004 - a version
        path = self._path(None)
        if second and path is not None:
            return Chain(2, self._directories(second, path))
        return None

    def _path(self, controller: str | None) -> str | None:
        """Return the cgroup of the process by version-1 controller, or of version 2 for None."""
        if self._memberships is None:
            return "/"
        for membership in self._memberships:
            if controller in membership.controllers or (controller is None and not membership.controllers):
                return membership.path
        return None

    def _directories(self, mounts: list[Mount], path: str) -> tuple[str, ...]:
        """Return the directories from the process's own up to the mount that shows most ancestors."""
        showing = [mount for mount in mounts if _below(mount.root, path) is not None]
        mount = min(showing, key=lambda mount: len(mount.root)) if showing else mounts[-1]
        steps = filter(None, (_below(mount.root, path) or "").split("/"))
        chain = [mount.point]
        for step in steps:
            chain.append(f"{chain[-1]}/{step}")
        return tuple(directory for directory in reversed(chain) if self._tree.is_directory(directory))


def parse_memberships(text: str) -> tuple[Membership, ...]:
    """Return the lines of ``/proc/self/cgroup``; lines that are none are left out."""
    found = []
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == len(Membership._fields) + 1 and parts[2].startswith("/"):
            found.append(Membership(frozenset(filter(None, parts[1].split(","))), parts[2].rstrip("/") or "/"))
    return tuple(found)


def parse_mounts(text: str) -> tuple[Mount, ...]:
    """Return the cgroup mounts of ``/proc/self/mountinfo``, in order."""
    found: list[Mount] = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3 or kind[0] not in {"cgroup", "cgroup2"}:  # noqa: PLR2004 - fields of a line
            continue
        root, point = (re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), field) for field in fields[3:5])
        controllers = frozenset(kind[2].split(",")) if kind[0] == "cgroup" else frozenset[str]()
        found.append(Mount(1 if kind[0] == "cgroup" else 2, controllers, root.rstrip("/") or "/", point.strip("/")))
    return tuple(found)


def _default_mounts(tree: Tree) -> list[Mount]:
    """Return what lies at the usual place when the mount table does not say."""
    names = [name for name in tree.children(_DEFAULT) if tree.is_directory(f"{_DEFAULT}/{name}")]
    known = {"cpu", "cpuacct", "cpuset", "memory"}
    found = [
        Mount(1, frozenset(name.split(",")), "/", f"{_DEFAULT}/{name}")
        for name in names
        if known & set(name.split(","))
    ]
    if found and "unified" in names:
        found.append(Mount(2, frozenset(), "/", f"{_DEFAULT}/unified"))
    elif not found and tree.is_directory(_DEFAULT):
        found.append(Mount(2, frozenset(), "/", _DEFAULT))
    return found


def _below(root: str, path: str) -> str | None:
    """Return `path` relative to `root`; None if it is not below it or leads out of the namespace."""
    if ".." in path.split("/") or ".." in root.split("/"):
        return None
    if root == "/":
        return path
    return path.removeprefix(root) if path == root or path.startswith(root + "/") else None
