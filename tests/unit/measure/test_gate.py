"""The gate, before any latency is seen."""

import pytest

from tuner.measure.gate import GateState, dirty_reasons, unusable_latencies
from tuner.records.measurement import Telemetry


@pytest.mark.parametrize(
    ("seen", "reasons"),
    [
        ({"steal_ratio": 0.01}, ()),
        ({"steal_ratio": 0.011}, ("steal",)),
        ({"foreign_ratio": 0.03}, ()),
        ({"foreign_ratio": 0.05}, ("foreign",)),
        ({"throttled_s": 0.1, "own_throttling": False}, ("throttled",)),
        ({"throttled_s": 0.1, "own_throttling": None}, ("throttled",)),
        ({"throttled_s": 0.1, "own_throttling": True}, ()),
        ({"major_faults": 1}, ("major_faults",)),
        ({"sentinel_ratio": 1.11}, ("sentinel",)),
        ({"suspended_s": 30.0}, ("suspended",)),
        ({"pressure_some_s": 0.9}, ()),
        ({}, ()),
    ],
)
def test_reasons(seen, reasons):
    """Limits of protocol step 5; unknown figures and pressure alone refuse nothing."""
    assert dirty_reasons(Telemetry(wall_s=1.0, **seen)) == reasons


def test_first_touch_of_artifacts_is_allowed():
    """Major faults in the first block are our own mapped files."""
    assert dirty_reasons(Telemetry(wall_s=1.0, major_faults=9), is_first=True) == ()


def test_a_worker_clock_that_jumped_is_refused():
    """The worker says two seconds, the parent saw one."""
    assert dirty_reasons(Telemetry(wall_s=1.0), worker_wall_s=2.0) == ("clock",)


@pytest.mark.parametrize(
    ("latencies", "reasons"), [((0.1, 0.1), ()), ((0.1, -0.1), ("clock",)), ((0.0, 0.0, 0.1), ("clock",))]
)
def test_latencies_no_clock_can_give(latencies, reasons):
    """Negative, or mostly zero."""
    assert unusable_latencies(latencies) == reasons


def test_two_redos_and_no_more():
    """A third redo would gate on luck."""
    state = GateState(budget_s=900)
    assert [state.may_redo(redos) for redos in range(3)] == [True, True, False]


def test_back_off_is_bounded_by_the_budget():
    """5 s, 15 s, and never more than 5% of the budget in all."""
    state = GateState(budget_s=200)
    assert state.back_off_s(0) == 5.0
    assert state.after_waiting(5.0).back_off_s(1) == 5.0
    assert state.after_waiting(10.0).back_off_s(1) == 0.0


def test_a_host_that_is_never_clean_opens_the_gate():
    """More than 30% redone: low confidence, no more redos."""
    state = GateState(budget_s=900)
    for _ in range(6):
        state = state.after_pair(was_redone=True)
    assert state.is_open
    assert not state.may_redo(0)


def test_a_few_redos_keep_the_gate():
    """Three of ten are 30%, not more."""
    state = GateState(budget_s=900)
    for number in range(10):
        state = state.after_pair(was_redone=number >= 7)
    assert not state.is_open


def test_two_bad_pairs_at_the_start_keep_the_gate():
    """A burst while the first trial runs is not the host's nature; a third bad pair is."""
    state = GateState(budget_s=900).after_pair(was_redone=True).after_pair(was_redone=True)
    assert not state.is_open
    assert state.after_pair(was_redone=True).is_open
