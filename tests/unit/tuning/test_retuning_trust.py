"""What a profile of a stranger may not decide for the user who tunes again from it."""

import json
from pathlib import Path

import pytest

from tuner.tuning.retuning import places_elsewhere, request_of


@pytest.mark.parametrize("option", ["trust_code", "trust_remote_code"])
def test_trust_is_not_taken_from_a_profile(profile, option):
    """A profile that says it is trusted is not: whoever runs `retune` says so."""
    request = request_of(profile(request={"model": "py:module:function", option: True}), Path("p.json"))
    assert (request.model, getattr(request, option)) == ("py:module:function", False)


PLACES = {"study": "s", "cache_dir": "c", "space": ["a.toml"], "baseline": "b.json"}


def test_places_below_the_profile_are_taken_over(profile, tmp_path):
    """What stands beside the profile, or below, is used as before."""
    asked = {
        name: [f"{tmp_path}/{value[0]}"] if isinstance(value, list) else f"{tmp_path}/{value}"
        for name, value in PLACES.items()
    }
    request = request_of(profile(request={"model": "m", **asked}), tmp_path / "p.json")
    assert {name: list(value) if name == "space" else value for name, value in request if name in PLACES} == asked


@pytest.mark.parametrize(
    "places",
    [
        *({name: [f"/elsewhere/{value[0]}"] if name == "space" else "/elsewhere"} for name, value in PLACES.items()),
        {"study": "{home}/../s"},
        {"study": "{home}/link/s"},
        {"space": ["{home}/a.toml", "/elsewhere/b.toml"]},
        {"storage": "sqlite:///x.db"},
        {"storage": "postgresql://db/x"},
    ],
)
def test_other_places_are_left_out(profile, tmp_path, places):
    """A stranger's profile neither writes nor opens anything elsewhere, by dots and links neither."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "link").symlink_to(tmp_path)
    asked = json.loads(json.dumps(places).replace("{home}", str(home)))
    made = profile(request={"model": "m", **asked})
    (name,) = places
    assert places_elsewhere(made, home / "p.json") == (name,)
    assert not getattr(request_of(made, home / "p.json"), name)
