"""The errors this package raises, drawn as a tree; it holds no logic.

TunerError
├── UsageError (2)        an option, file, model, space or profile is wrong
├── HostError (3)         this host or a backend cannot do what was asked
├── NoFeasibleTrial (4)   nothing measured keeps the constraints
├── ProfileMismatch (5)   a profile does not hold here
└── ProtocolError (70)    parent and worker disagree: a bug of ours
TrialError                one trial failed; becomes a Failure record, never leaves tune()
Unsupported               a backend or step cannot do this; the worker turns it into a TrialError
"""

from typing import ClassVar, Literal

__all__ = [
    "FailureKind",
    "HostError",
    "NoFeasibleTrial",
    "ProfileMismatch",
    "ProtocolError",
    "TrialError",
    "TunerError",
    "Unsupported",
    "UsageError",
]

FailureKind = Literal[
    "timeout",
    "crash",
    "out_of_memory",
    "illegal_instruction",
    "unsupported",
    "incorrect",
    "not_applied",
    "error",
]


class TunerError(Exception):
    """An error whose text is one line: the cause and the way out."""

    exit_code: ClassVar[int] = 70


class UsageError(TunerError):
    """What the user gave cannot be used."""

    exit_code = 2


class HostError(TunerError):
    """The host or an engine lacks what is needed."""

    exit_code = 3


class NoFeasibleTrial(TunerError):  # noqa: N818 - a result that ends the command, not a defect
    """No configuration keeps the constraints."""

    exit_code = 4


class ProfileMismatch(TunerError):  # noqa: N818 - as above
    """The profile does not hold on this host, with these libraries or this model."""

    exit_code = 5


class ProtocolError(TunerError):
    """An answer of a worker that the protocol does not allow."""

    exit_code = 70


class TrialError(Exception):
    """One trial failed, in a stage and of a kind; the study goes on.

    Attributes:
        stage: The worker's command that failed (``load``, ``warm``, …) or ``spawn``.
        kind: One of the failure kinds of the design.
    """

    def __init__(self, stage: str, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.stage = stage
        self.kind: FailureKind = kind
        self.message = message

    def __str__(self) -> str:
        return f"{self.stage}: {self.kind}: {self.message}"


class Unsupported(Exception):  # noqa: N818 - the contract's name for plug-ins
    """A backend or step cannot do this; the text says why."""
