"""Ctrl-C and SIGTERM, also where the interpreter swallows what a signal raises."""

import contextlib
import signal
import threading

import pytest

from tuner.records.events import Event
from tuner.tuning.interrupting import Interrupts

EVENT = Event(kind="trial", text="#1")
SIGNALS = [signal.SIGINT, signal.SIGTERM]


def ignore(event):
    """Take an event."""


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_is_an_interrupt(number):
    """Both signals raise at once."""
    with Interrupts(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


@pytest.mark.parametrize("number", SIGNALS)
def test_lost_interrupt_comes_with_the_next_event(number):
    """What was swallowed (by a destructor, a callback) is raised again."""
    with Interrupts() as interrupts:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            interrupts.passed_on(ignore)(EVENT)


class Dying:
    """Runs a function when it is collected."""

    def __init__(self, last_act):
        self.last_act = last_act

    def __del__(self):
        self.last_act()


def test_swallowed_interrupt_prints_nothing(monkeypatch):
    """Only what else a destructor raises is reported."""
    reports = []
    monkeypatch.setattr("sys.unraisablehook", lambda report: reports.append(report.exc_type))
    with Interrupts() as interrupts:
        Dying(lambda: signal.raise_signal(signal.SIGINT))
        Dying(lambda: 1 / 0)
    assert (interrupts.is_due, reports) == (True, [ZeroDivisionError])
    Dying(lambda: int("none"))
    assert reports == [ZeroDivisionError, ValueError]


def test_interrupt_that_arrived_is_over():
    """Once dealt with, events pass."""
    with Interrupts() as interrupts:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        interrupts.take()
        interrupts.passed_on(ignore)(EVENT)
    assert not interrupts.is_due


def test_events_pass():
    """Without an interrupt every event arrives."""
    seen = []
    with Interrupts() as interrupts:
        interrupts.passed_on(seen.append)(EVENT)
    assert seen == [EVENT]


@pytest.mark.parametrize("number", SIGNALS)
def test_actions_come_back(number):
    """Afterwards a signal does what it did before."""
    before = signal.getsignal(number)
    with Interrupts():
        pass
    assert signal.getsignal(number) == before


def test_other_threads_set_no_action():
    """In another thread, where signals cannot be taken, nothing is set and nothing fails."""
    inside = []

    def run():
        with Interrupts():
            inside.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert inside == [signal.getsignal(signal.SIGTERM)]
