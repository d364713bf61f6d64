"""What a run says that found no rival for the baseline."""

from types import SimpleNamespace

import pytest

from tuner.tuning.finale import without_rival


@pytest.mark.parametrize(
    ("states", "verdict"),
    [
        (["failed", "failed"], "INCONCLUSIVE"),
        (["failed", "pruned"], "NO_WORTHWHILE_WIN"),
        (["measured"], "NO_WORTHWHILE_WIN"),
        ([], "NO_WORTHWHILE_WIN"),
    ],
)
def test_nothing_is_known_of_what_only_failed(states, verdict):
    """Workers that were all killed say nothing of speed; a space of the baseline alone has no gain in it."""
    records = [SimpleNamespace(state="measured", purpose="baseline")]
    records += [SimpleNamespace(state=state, purpose="search") for state in states]
    session = SimpleNamespace(records=records, baseline="b", profile=lambda **fields: fields)
    assert without_rival(session) == {"verdict": verdict, "baseline": "b", "best": "b"}
