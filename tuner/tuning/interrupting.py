"""Ctrl-C and SIGTERM as one interrupt that cannot get lost; it decides nothing about what follows."""

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Self

from tuner.records.events import Event, OnEvent


class Interrupts:
    """While entered, SIGINT and SIGTERM raise KeyboardInterrupt; only in the main thread, which alone may set actions.

    An exception that is raised while a destructor or a weak reference's callback runs is swallowed by the interpreter.
    Such an interrupt is raised again at the next event, and the interpreter's report of it is not printed.
    """

    def __init__(self) -> None:
        self.is_due = False
        self._before: dict[signal.Signals, object] = {}
        self._report = sys.unraisablehook

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._interrupt)
            self._report, sys.unraisablehook = sys.unraisablehook, self._report_others
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, action in self._before.items():
            signal.signal(number, action)  # type: ignore[arg-type] # what signal.signal gave back
        if self._before:
            sys.unraisablehook = self._report

    def _interrupt(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signal module's signature
        self.is_due = True
        raise KeyboardInterrupt

    def _report_others(self, swallowed: "sys.UnraisableHookArgs") -> None:
        if swallowed.exc_type is not KeyboardInterrupt:
            self._report(swallowed)

    def take(self) -> None:
        """Say that the interrupt has arrived where it is dealt with."""
        self.is_due = False

    def passed_on(self, on_event: OnEvent) -> OnEvent:
        """Return `on_event` with a look at each event whether an interrupt got lost."""

        def look(event: Event) -> None:
            on_event(event)
            if self.is_due:
                raise KeyboardInterrupt

        return look
