"""The worker's loop: one command, one answer; a failure is an answer too, after which the worker leaves."""

import contextlib
import os
import sys
import traceback
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from io import FileIO

from tuner.errors import FailureKind, ProtocolError, TunerError, Unsupported
from tuner.messages import (
    Answer,
    Build,
    Bye,
    CheckFidelity,
    Command,
    Describe,
    Failed,
    Load,
    Prepare,
    Probe,
    Quit,
    Ready,
    RunBlock,
    Warm,
    decode_command,
    encode,
)
from tuner.worker import making, reading
from tuner.worker.loaded import LoadedModel, NotApplied

MESSAGE_LIMIT = 600


class Worker:
    """Obeys commands; holds the loaded model between them."""

    def __init__(self) -> None:
        self.model: LoadedModel | None = None

    def obey(self, command: Command) -> Answer:  # noqa: C901, PLR0911 - one answer per command
        """Carry out one command; any exception is the caller's to turn into ``failed``."""
        match command:
            case Prepare():
                return making.prepare_workload(command)
            case Describe():
                return making.describe_model(command)
            case Build():
                return making.build_step(command)
            case Load():
                self.model = LoadedModel(command)
                return self.model.loaded
            case Warm():
                return self.loaded_model().warm(command)
            case RunBlock():
                return self.loaded_model().block(command)
            case CheckFidelity():
                return self.loaded_model().fidelity(command)
            case Probe():
                return making.probe(command)
            case Quit():
                if self.model is not None:
                    self.model.close()
                return Bye()

    def loaded_model(self) -> LoadedModel:
        """Return the loaded model.

        Raises:
            ProtocolError: Nothing is loaded.
        """
        if self.model is None:
            raise ProtocolError("nothing is loaded: send `load` first")
        return self.model


def serve(commands: Iterable[bytes], answers: FileIO) -> int:
    """Answer every command until ``quit``, a failure or the end of input.

    Returns:
        0 after ``bye`` or the end of input, 1 after ``failed``.
    """
    worker = Worker()
    send(answers, Ready(versions=package_versions("autotune-cpu"), pid=os.getpid(), cpus=reading.own_cpus()))
    for line in commands:
        if not line.strip():
            continue
        stage = "command"
        try:
            command = decode_command(line)
            stage = command.command
            answer = worker.obey(command)
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is this trial's failure
            traceback.print_exc(file=sys.stderr)
            send(answers, Failed(stage=stage, kind=kind_of(error), message=one_line(error)))
            leave(1)
        send(answers, answer)
        if isinstance(answer, Bye):
            leave(0)
    leave(0)
    return 0


def leave(code: int) -> None:
    """End at once: destructors of engines at interpreter exit may hang or crash, and nothing of ours is left to do."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def send(answers: FileIO, answer: Answer) -> None:
    """Write one answer whole, also through a pipe that takes it in parts."""
    data = memoryview(encode(answer))
    while data:
        data = data[answers.write(data) :]


def kind_of(error: Exception) -> FailureKind:
    """Classify an exception of an engine, a step or ours."""
    if isinstance(error, NotApplied):
        return "not_applied"
    if isinstance(error, Unsupported):
        return "unsupported"
    if isinstance(error, MemoryError) or "out of memory" in str(error).lower() or "bad_alloc" in str(error):
        return "out_of_memory"
    if type(error).__name__ == "Incorrect":
        return "incorrect"
    return "error"


def one_line(error: Exception) -> str:
    """Return an error's text on one line, with its type where that is not its kind already, cut to a bound."""
    text = " ".join(str(error).split()) or "no text"
    if not isinstance(error, (TunerError, Unsupported, NotApplied)) and kind_of(error) != "incorrect":
        text = f"{type(error).__name__}: {text}"
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"


def package_versions(*names: str) -> dict[str, str]:
    """Return the versions of those `names` that are installed."""
    found: dict[str, str] = {}
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
