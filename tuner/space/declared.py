"""What the files state of one backend: its chains, its parameters and its rules; no host is known here."""

from collections.abc import Mapping
from dataclasses import dataclass

from tuner.space.expressions import Expression
from tuner.space.parameters import Parameter

__all__ = ["DeclaredBackend", "Rule", "step_of"]


@dataclass(frozen=True)
class Rule:
    """A requirement on every point, and why."""

    require: Expression
    reason: str


@dataclass(frozen=True)
class DeclaredBackend:
    """One backend.

    Attributes:
        chains: Build steps by chain name; the first is the plainest.
        parameters: In an order in which each stands after those that its `when` names; ``artifact.chain`` is first.
    """

    name: str
    chains: Mapping[str, tuple[str, ...]]
    parameters: tuple[Parameter, ...]
    rules: tuple[Rule, ...]


def step_of(name: str) -> str | None:
    """Return the build step that a parameter belongs to, None for all others."""
    root, _, rest = name.partition(".")
    return rest.rpartition(".")[0] or None if root == "artifact" else None
