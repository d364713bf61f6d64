"""Numbers of protocol step 4."""

import pytest

from tuner.measure.plan import block_calls, slow_warm_calls


@pytest.mark.parametrize(
    ("fast_s", "slow_s", "n"),
    [(0.001, 0.001, 500), (0.005, 0.01, 100), (0.04, 0.08, 13), (0.05, 0.05, 10), (0.1, 0.149, 10)],
)
def test_usual_block(fast_s, slow_s, n):
    """Calls are max(10, min(0.5 s / fast, 1 s / slow)) and four block pairs."""
    plan = block_calls(fast_s, slow_s)
    assert (plan.n, plan.blocks, plan.discard_calls, plan.discard_s) == (n, 4, 3, 0.05)


@pytest.mark.parametrize(("slow_s", "n"), [(0.15, 4), (0.3, 3), (0.49, 3)])
def test_slow_calls_need_three(slow_s, n):
    """From 150 ms a block has at least 3 calls; at 150 ms in both arms it has 4."""
    assert block_calls(slow_s, slow_s).n == n


def test_half_second_calls():
    """Two warm, one discarded, two timed, two blocks."""
    plan = block_calls(0.5, 0.5)
    assert (plan.n, plan.discard_calls, plan.blocks, plan.warm_calls, plan.use_anchor) == (2, 1, 2, 2, True)


def test_five_second_calls():
    """One timed call, no anchor, one look at five pairs."""
    plan = block_calls(5.0, 5.0)
    assert (plan.n, plan.discard_calls, plan.warm_calls, plan.use_anchor, plan.looks) == (1, 0, 1, False, (5,))


def test_the_slower_arm_decides():
    """A fast candidate against a slow baseline follows the slow rules."""
    assert block_calls(0.1, 6.0) == block_calls(6.0, 6.0)


def test_tail_targets_have_their_calls_in_one_process():
    """p99 needs 299 calls in four blocks, and looks later."""
    plan = block_calls(0.05, 0.05, 0.99)
    assert plan.n * plan.blocks >= 299
    assert plan.looks == (6, 10, 16)


def test_block_seconds_include_discards():
    """Ten calls of 10 ms and 50 ms before them; slow models discard by calls."""
    assert block_calls(0.05, 0.05).block_s(0.05) == pytest.approx(0.65)
    assert block_calls(0.5, 0.5).block_s(0.5) == pytest.approx(1.5)
    assert block_calls(5.0, 5.0).block_s(5.0) == pytest.approx(5.0)


def test_warm_calls_of_slow_models():
    """None below half a second."""
    assert [slow_warm_calls(s) for s in (0.49, 0.5, 4.99, 5.0)] == [None, 2, 2, 1]
