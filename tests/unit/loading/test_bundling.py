"""Bundles: whole or not at all, never over somebody else's files, and loadable from any place."""

import json

import pytest

from tuner.artifacts.store import sha256_of
from tuner.errors import HostError, ProfileMismatch, UsageError
from tuner.loading.bundling import BUNDLE, PROFILE, SUMS, Bundle, make_bundle
from tuner.loading.files import find_artifacts, read_profile


@pytest.fixture
def tuned(tmp_path, profile_document, artifact_entry):
    """Return a profile file and the cache that holds its artifact."""
    cache = tmp_path / "cache"
    (cache / "artifacts" / "ab" / "sub").mkdir(parents=True)
    (cache / "artifacts" / "ab" / "model.onnx").write_bytes(b"graph")
    (cache / "artifacts" / "ab" / "sub" / "weights").write_bytes(b"weights" * 1000)
    names = ("artifacts/ab/model.onnx", "artifacts/ab/sub/weights")
    best = profile_document()["best"] | {"artifacts": [artifact_entry(cache, name) for name in names]}
    path = tmp_path / "tuned.json"
    path.write_text(json.dumps(profile_document(best=best)))
    return path, cache


def test_loads_from_any_place_without_the_cache(tuned, tmp_path):
    """Moved elsewhere, with the cache gone, every digest still holds."""
    path, cache = tuned
    make_bundle(path, tmp_path / "bundle", cache)
    cache.rename(tmp_path / "gone")
    moved = (tmp_path / "bundle").rename(tmp_path / "elsewhere")
    found = find_artifacts(read_profile(moved / PROFILE), [moved, cache])
    assert (found / "model.onnx").read_bytes() == b"graph"


def test_profile_is_the_same(tuned, tmp_path):
    """The profile is copied byte by byte."""
    path, cache = tuned
    make_bundle(path, tmp_path / "bundle", cache)
    assert (tmp_path / "bundle" / PROFILE).read_bytes() == path.read_bytes()


def test_digests_of_every_file(tuned, tmp_path):
    """The manifest and the sums name every file but themselves."""
    path, cache = tuned
    make_bundle(path, tmp_path / "b", cache)
    files = {
        str(file.relative_to(tmp_path / "b")): sha256_of(file) for file in (tmp_path / "b").rglob("*") if file.is_file()
    }
    left = {name: digest for name, digest in files.items() if name not in (BUNDLE, SUMS)}
    bundle = Bundle.from_json((tmp_path / "b" / BUNDLE).read_bytes())
    sums = dict(reversed(line.split("  ")) for line in (tmp_path / "b" / SUMS).read_text().splitlines())
    assert left == {file.path: file.sha256 for file in bundle.files} == sums


def test_nothing_built(tmp_path, profile_document):
    """A profile that needs no artifact is a bundle of one file."""
    (tmp_path / "p.json").write_text(json.dumps(profile_document()))
    assert [file.path for file in make_bundle(tmp_path / "p.json", tmp_path / "b", tmp_path).files] == [PROFILE]


def test_empty_directory_is_taken(tuned, tmp_path):
    """An empty directory may be there already."""
    (tmp_path / "b").mkdir()
    make_bundle(tuned[0], tmp_path / "b", tuned[1])
    assert (tmp_path / "b" / PROFILE).is_file()


def test_earlier_bundle_is_replaced_whole(tuned, tmp_path):
    """Files of an earlier bundle do not stay."""
    path, cache = tuned
    make_bundle(path, tmp_path / "b", cache)
    (tmp_path / "b" / "old").write_text("x")
    make_bundle(path, tmp_path / "b", cache)
    assert not (tmp_path / "b" / "old").exists()
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".b")]


def test_foreign_directory_is_left_alone(tuned, tmp_path):
    """A directory with other files is refused and untouched."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine").write_text("x")
    with pytest.raises(UsageError, match="holds other files, which are left alone"):
        make_bundle(tuned[0], tmp_path / "b", tuned[1])
    assert [file.name for file in (tmp_path / "b").iterdir()] == ["mine"]


def test_file_in_the_way(tuned, tmp_path):
    """A file is no place for a bundle."""
    (tmp_path / "b").write_text("x")
    with pytest.raises(UsageError, match="is no directory"):
        make_bundle(tuned[0], tmp_path / "b", tuned[1])


def test_changed_artifact(tuned, tmp_path):
    """An artifact that is not the profile's is not passed on; nothing is left behind."""
    path, cache = tuned
    (cache / "artifacts" / "ab" / "model.onnx").write_bytes(b"grapf")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ProfileMismatch, match="another content"):
        make_bundle(path, tmp_path / "b", cache)
    assert sorted(tmp_path.iterdir()) == before


def test_full_disk(tuned, tmp_path, full_disk):
    """A bundle that does not fit leaves nothing behind, and an earlier one as it was."""
    path, cache = tuned
    make_bundle(path, tmp_path / "b", cache)
    before = sorted(tmp_path.rglob("*"))
    with full_disk(1000), pytest.raises(HostError, match="cannot be written"):
        make_bundle(path, tmp_path / "b", cache)
    assert sorted(tmp_path.rglob("*")) == before
