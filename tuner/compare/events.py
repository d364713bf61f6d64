"""Progress of comparisons as plain data; it prints nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tuner.records.base import Scalar


@dataclass(frozen=True)
class Event:
    """Something happened.

    Attributes:
        kind: ``opened``, ``warmed``, ``pair``, ``redo``, ``anchor_restarted``, ``look``, ``round`` or ``dropped``.
        facts: Figures by name, in seconds and bytes.
    """

    kind: str
    facts: Mapping[str, Scalar] = field(default_factory=dict)


OnEvent = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Take an event and do nothing."""
