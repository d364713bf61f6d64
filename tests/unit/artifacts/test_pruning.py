"""The store's size cap: what goes, what stays."""

import os
from pathlib import Path

import pytest

from tuner.artifacts.pruning import entries, key_of, needed_keys, prune, remove_litter
from tuner.artifacts.store import Store, write_atomically
from tuner.records.measurement import Failure

KEYS = ["a" * 64, "b" * 64, "c" * 64]


@pytest.fixture
def store(tmp_path) -> Store:
    """A store of three entries of 1000 bytes, used one after the other."""
    store = Store(tmp_path / "cache")
    for number, key in enumerate(KEYS):
        with store.building(key) as directory:
            (directory / "model.bin").write_bytes(b"x" * 1000)
            store.put(key, {"what": "artifact", "chain": [{"step": f"step{number}"}]}, directory, 1.5)
        os.utime(store.path(key) / "artifact.json", (1000 + number, 1000 + number))
    return store


def size_of(store: Store) -> int:
    """Bytes of all entries."""
    return sum(entry.bytes for entry in entries(store))


def needs(store: Store, profile: Path, key: str) -> None:
    """Register a profile file that needs `key`."""
    (store.root / "profiles").mkdir(exist_ok=True)
    text = f'{{"path": "{profile}", "keys": ["{key}"]}}'
    write_atomically(store.root / "profiles" / f"{profile.name}.json", text.encode())


def test_entries_come_longest_unused_first(store):
    """Each with what it is and what it cost."""
    assert [(entry.key, entry.what, entry.build_s) for entry in entries(store)] == [
        (KEYS[0], "step0", 1.5),
        (KEYS[1], "step1", 1.5),
        (KEYS[2], "step2", 1.5),
    ]


def test_prune_removes_the_longest_unused(store):
    """Only as many as the limit asks."""
    removed = prune(store, size_of(store) - 1)
    assert [entry.key for entry in removed] == KEYS[:1]
    assert store.find(KEYS[0]) is None
    assert store.find(KEYS[1]) is not None


def test_prune_keeps_what_fits(store):
    """At the limit nothing goes."""
    assert prune(store, size_of(store)) == []


def test_prune_keeps_what_a_profile_needs(store, tmp_path):
    """Even if it is the longest unused, and even above the limit."""
    profile = tmp_path / "p.json"
    profile.write_text("{}")
    needs(store, profile, KEYS[0])
    assert [entry.key for entry in prune(store, 0)] == KEYS[1:]
    assert store.find(KEYS[0]) is not None


def test_a_deleted_profile_needs_nothing(store, tmp_path):
    """Its registration is forgotten."""
    needs(store, tmp_path / "gone.json", KEYS[0])
    assert needed_keys(store) == set()
    assert list((store.root / "profiles").iterdir()) == []


def test_failures_are_entries_too(store):
    """A remembered failure is listed as one and can be pruned."""
    store.remember_failure("d" * 64, Failure(stage="build", kind="crash", message="boom"))
    assert [entry.what for entry in entries(store) if entry.key == "d" * 64] == ["failure"]
    assert "d" * 64 in {entry.key for entry in prune(store, 0)}


def test_litter_of_dead_builds_goes(store):
    """A temporary directory of a process that is gone is removed, one of a living process stays."""
    shard = store.path(KEYS[0]).parent
    (shard / f".tmp-{'e' * 16}-{2**22 + 1}-1").mkdir()
    (shard / f".tmp-{'f' * 16}-{os.getpid()}-1").mkdir()
    (shard / ".gone-x").mkdir()
    assert remove_litter(store) == 2
    assert [path.name for path in shard.glob(".tmp-*")] == [f".tmp-{'f' * 16}-{os.getpid()}-1"]


def test_key_of_a_path():
    """The third part of a path below the cache; anything else has none."""
    assert key_of(f"artifacts/aa/{KEYS[0]}/model.onnx") == KEYS[0]
    assert key_of("elsewhere/model.onnx") is None
