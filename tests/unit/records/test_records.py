"""Records: the same in memory, in files and between processes."""

import json

import pytest
from pydantic import ValidationError

from tuner.errors import UsageError
from tuner.records.base import Record, Settings, digest_of
from tuner.records.config import Config, StepSettings
from tuner.records.measurement import Latency
from tuner.records.profile import Profile


class Knobs(Settings):
    """Settings of an engine that does not exist."""

    threads: int | None = None
    spin: bool | None = None


class Figure(Record):
    """A record of one figure."""

    value_s: float


def test_digest_is_stable():
    """The digest of a value never changes between versions: studies and artifacts are found by it."""
    expected = "e4caa232016484a6396284455390402a812bfdd2be394296225426cebe5d05ad"
    assert digest_of({"b": [1, None], "a": "ä"}) == expected


def test_digest_ignores_key_order():
    """Two configs that differ only in the order of their settings are one."""
    one = Config(backend="fake", session={"threads": 2, "latency_us": 500})
    other = Config(backend="fake", session={"latency_us": 500, "threads": 2})
    assert one.digest() == other.digest()


def test_digest_sees_every_value():
    """A changed value is another config."""
    assert Config(backend="fake").digest() != Config(backend="fake", instances=2).digest()


def test_digest_survives_a_file():
    """A config read from JSON has the digest of the one written."""
    config = Config(backend="fake", artifact=(StepSettings(step="s", settings={"k": 1.5, "n": None}),))
    assert Config.from_json(config.to_json()).digest() == config.digest()


def test_mark_of_the_byte_order():
    """What an editor puts in front of a file is no part of the JSON, in bytes or text."""
    text = "\ufeff" + Config(backend="fake").to_json()
    assert Config.from_json(text) == Config.from_json(text.encode()) == Config(backend="fake")


def test_records_are_frozen():
    """Nothing changes a record once it is made."""
    with pytest.raises(ValidationError, match="frozen"):
        Config(backend="fake").backend = "other"


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_no_figure_is_nan_or_infinite(text):
    """What JSON cannot hold is refused on reading."""
    with pytest.raises(UsageError, match="value_s"):
        Figure.from_json(f'{{"value_s": {text}}}')


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_is_refused_where_it_arises(value):
    """A figure that is not finite never gets into a record."""
    with pytest.raises(ValidationError, match="finite"):
        Latency(p50=value)


def test_untyped_places_cannot_write_nan():
    """A value in an untyped table that JSON has no word for is not written."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        digest_of({"value": float("nan")})


def test_unknown_key_is_named():
    """An unknown key is refused with the file and the key."""
    with pytest.raises(UsageError, match=r"^c\.json: sesion: "):
        Config.from_json('{"backend": "fake", "sesion": {}}', source="c.json")


def test_missing_key_is_named():
    """A missing key is refused with the file and the key."""
    with pytest.raises(UsageError, match=r"^c\.json: backend: "):
        Config.from_json("{}", source="c.json")


@pytest.mark.parametrize("text", ['{"backend": 1}', '{"backend": "f", "instances": "1"}', '{"backend": "f", "x":'])
def test_nothing_is_converted(text):
    """A value of another type and broken JSON are refused, not guessed."""
    with pytest.raises(UsageError):
        Config.from_json(text)


def test_error_is_one_line():
    """A refusal fits on one line."""
    with pytest.raises(UsageError) as caught:
        Config.from_json('{"backend": 1, "other": 2}')
    assert str(caught.value).count("\n") == 0


def test_settings_refuse_unknown_keys():
    """A backend's settings name the source and the key."""
    with pytest.raises(UsageError, match=r"^backend fake: thread: "):
        Knobs.from_json_object({"thread": 1}, source="backend fake")


def test_settings_keep_booleans_apart_from_numbers():
    """True is no thread count."""
    with pytest.raises(UsageError, match="threads"):
        Knobs.from_json_object({"threads": True}, source="s")


def test_profile_round_trip(profile):
    """A profile reads back as it was written."""
    made = profile()
    assert Profile.from_json(made.to_json(indent=1)) == made


def test_profile_names_its_schema(profile):
    """The schema stands in the file under the contract's name."""
    assert json.loads(profile().to_json())["schema"] == "tuner.profile/1"


def test_profile_holds_the_contracts_keys(profile):
    """Every key that the contract lists stands in the file."""
    listed = (
        "schema created_at tuner_version incomplete command fingerprint hardware software model workload objective "
        "effort baseline best challenger fallback verdict speedup limit pareto importance failures notices"
    )
    assert set(listed.split()) <= set(json.loads(profile().to_json()))


def test_another_schema_is_refused(profile_document):
    """A profile of a later version is not half-read."""
    with pytest.raises(UsageError, match="schema"):
        Profile.from_json(json.dumps(profile_document(schema="tuner.profile/2")))


def test_chain_of_nothing_is_the_source():
    """A config that builds nothing opens the source."""
    assert Config(backend="fake").chain() == "source"


def test_chain_names_its_steps():
    """Steps are named in the order they are built."""
    assert Config(backend="fake", artifact=(StepSettings(step="a"), StepSettings(step="b"))).chain() == "a+b"


def newer(profile_document):
    """Return a profile with keys of a newer version: at the top, in records, in a tuple of records, in the config."""
    document = profile_document(energy={"joules": 3}, notices=[{"code": "c", "detail": "d", "link": "l"}])
    document["best"]["measurement"]["latency_s"]["p999"] = 0.5
    document["best"]["config"]["process"]["io_priority"] = "idle"
    return document


KEYS = {
    "energy",
    "notices.0.link",
    "best.measurement.latency_s.p999",
    "best.config.process.io_priority",
}


def test_profile_of_a_newer_version_is_read(profile_document):
    """Keys may be added to a profile: what is known is read, what is not is named."""
    profile = Profile.from_json(json.dumps(newer(profile_document)))
    assert (profile.best.measurement.latency_s.p50, set(profile.newer_keys())) == (0.01, KEYS)


def test_keys_of_a_newer_version_survive_rewriting(profile_document):
    """A profile that is read and written again has lost nothing."""
    document = newer(profile_document)
    written = Profile.from_json(json.dumps(document)).to_json()
    assert json.loads(written)["best"]["config"]["process"]["io_priority"] == "idle"
    again = Profile.from_json(written)
    assert (set(again.newer_keys()), again.to_json()) == (KEYS, written)


@pytest.mark.parametrize(
    ("key", "value"), [("verdict", "MAYBE"), ("best", {}), ("speedup", {"ratio": "2"}), ("schema", "tuner.profile/2")]
)
def test_known_keys_of_a_profile_are_still_checked(profile_document, key, value):
    """That keys may be added says nothing of the ones that are known."""
    with pytest.raises(UsageError, match=rf"^p\.json: {key}"):
        Profile.from_json(json.dumps(profile_document(**{key: value})), source="p.json")


def test_a_profile_without_newer_keys_names_none(profile):
    """The usual profile."""
    assert profile().newer_keys() == ()
