"""What a profile of a stranger may not decide for the user who tunes again from it."""

from pathlib import Path

import pytest

from tuner.tuning.retuning import request_of


@pytest.mark.parametrize("option", ["trust_code", "trust_remote_code"])
def test_trust_is_not_taken_from_a_profile(profile, option):
    """A profile that says it is trusted is not: whoever runs `retune` says so."""
    request = request_of(profile(request={"model": "py:module:function", option: True}), Path("p.json"))
    assert (request.model, getattr(request, option)) == ("py:module:function", False)
