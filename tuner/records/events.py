"""Progress of a run: one record an event, sent upwards through one callable; it renders nothing."""

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from tuner.records.base import Record, Scalar

EventKind = Literal[
    "start",
    "notice",
    "build",
    "built",
    "audit",
    "baseline",
    "plan",
    "trial",
    "race",
    "playoff",
    "verdict",
    "done",
]


class Event(Record):
    """Something happened.

    Attributes:
        text: A line for a person.
        elapsed_s: Seconds since the run began, None where the sender does not know.
        data: Figures by name, seconds and bytes.
    """

    kind: EventKind
    text: str
    elapsed_s: float | None = None
    data: dict[str, Scalar] = Field(default_factory=dict)


OnEvent = Callable[[Event], None]
