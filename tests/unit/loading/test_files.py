"""A profile is data that may come from a stranger: what is refused before anything of it is used."""

import json

import pytest

from tuner.errors import ProfileMismatch, UsageError
from tuner.loading.files import LIMIT_BYTES, find_artifacts, read_profile


@pytest.fixture
def write(tmp_path, profile_document):
    """Return a function that writes a profile with changes and returns its path."""

    def make(**changes):
        path = tmp_path / "p.json"
        path.write_text(json.dumps(profile_document(**changes)))
        return path

    return make


@pytest.fixture
def best(profile_document):
    """Return a function that makes a ``best`` with artifact files, environment and process settings."""

    def make(*, artifacts=(), env=None, **process):
        found = profile_document()["best"]
        found["config"]["process"] |= {"env": env or {}, **process}
        return {**found, "artifacts": list(artifacts)}

    return make


@pytest.fixture
def base(tmp_path):
    """Return a directory with a file to serve."""
    (tmp_path / "base" / "artifacts" / "ab").mkdir(parents=True)
    (tmp_path / "base" / "artifacts" / "ab" / "model.onnx").write_bytes(b"graph")
    return tmp_path / "base"


def file_named(path):
    """Return an artifact file with a path."""
    return {"path": path, "sha256": "0" * 64, "bytes": 1}


def test_valid_profile(write, profile):
    """A valid profile is read."""
    assert read_profile(write()) == profile()


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../secret", "a/../../b", "..", "", "a\\b", "\\\\host\\share", "a\x00b", "//x"],
)
def test_paths_that_could_leave(write, best, path):
    """Absolute paths, ``..``, backslashes and NUL are refused."""
    with pytest.raises(UsageError, match="only relative paths"):
        read_profile(write(best=best(artifacts=[file_named(path)])))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LD_PRELOAD", "/tmp/evil.so"),  # noqa: S108 - a made-up attack
        ("LD_LIBRARY_PATH", "."),
        ("PYTHONPATH", "."),
        ("PYTHONSTARTUP", "x.py"),
        ("PATH", "."),
        ("CC", "evil"),
        ("OMP_NUM_THREADS", "2; rm -rf /"),
        ("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=1"),
        ("BASH_ENV", "x"),
        ("omp_num_threads", "2"),
        ("OMP_NUM_THREADS\n", "2"),
    ],
)
@pytest.mark.parametrize("part", ["best", "baseline", "fallback"])
def test_variables_that_are_not_allowed(write, profile_document, part, name, value):
    """No config of a profile may set a variable, or a value, that is not listed."""
    found = profile_document()[part]
    found["config"]["process"]["env"] = {name: value}
    with pytest.raises(UsageError, match=r"process\.env"):
        read_profile(write(**{part: found}))


def test_challenger_is_checked_too(write, profile_document):
    """The unconfirmed finalist is a config like the others."""
    found = profile_document()["baseline"]
    found["config"]["process"]["env"] = {"LD_PRELOAD": "evil.so"}
    with pytest.raises(UsageError, match=r"process\.env"):
        read_profile(write(challenger=found))


def test_allowed_variable(write, best):
    """A listed variable with a plain value passes."""
    found = read_profile(write(best=best(env={"OMP_NUM_THREADS": "2"})))
    assert found.best.config.process.env == {"OMP_NUM_THREADS": "2"}


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe\x00\x01", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "schema None"),
        (b"{}", "schema None"),
        (b'{"schema": "tuner.profile/2"}', r"schema 'tuner.profile/2' where 'tuner.profile/1' is read"),
        (b'{"schema": "tuner.profile/1"}', "Field required"),
        (b'{"schema": ["tuner.profile/1"]}', "schema"),
    ],
)
def test_what_is_no_profile(tmp_path, content, part):
    """Other files, other schemas and broken JSON are refused with the file's name."""
    path = tmp_path / "p.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=rf"p\.json: .*{part}"):
        read_profile(path)


def test_key_of_a_newer_version(write):
    """A key that this version does not know is named and otherwise left alone."""
    assert read_profile(write(energy={"joules": 3})).newer_keys() == ("energy",)


def test_nan_in_a_profile(tmp_path, profile_document):
    """NaN is no JSON: a profile that holds it is refused."""
    text = json.dumps(profile_document()).replace('"ratio": 2.0', '"ratio": NaN')
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(UsageError, match=r"p\.json"):
        read_profile(tmp_path / "p.json")


def test_huge_file(tmp_path):
    """A file of gigabytes is refused without being read."""
    with (tmp_path / "p.json").open("wb") as file:
        file.truncate(LIMIT_BYTES + 1)
    with pytest.raises(UsageError, match="too large for a profile"):
        read_profile(tmp_path / "p.json")


def test_absent_profile(tmp_path):
    """A path that does not exist is said so."""
    with pytest.raises(UsageError, match="no such profile"):
        read_profile(tmp_path / "p.json")


def test_directory_is_no_profile(tmp_path):
    """A directory cannot be read as a profile."""
    with pytest.raises(UsageError, match="cannot be read"):
        read_profile(tmp_path)


def test_nothing_built(profile, base):
    """A config that builds nothing needs no artifact."""
    assert find_artifacts(profile(), [base]) is None


def test_artifact_is_found(profile, best, base, artifact_entry):
    """The directory that holds the files, each digest checked."""
    entry = artifact_entry(base, "artifacts/ab/model.onnx")
    found = find_artifacts(profile(best=best(artifacts=[entry])), [base])
    assert found == base / "artifacts" / "ab"


def test_directory_of_several_files(profile, best, base, artifact_entry):
    """Files in subdirectories are served from the directory they share."""
    (base / "artifacts/ab/sub").mkdir()
    (base / "artifacts/ab/sub/x.bin").write_bytes(b"x")
    entries = [artifact_entry(base, name) for name in ("artifacts/ab/sub/x.bin", "artifacts/ab/model.onnx")]
    assert find_artifacts(profile(best=best(artifacts=entries)), [base]) == base / "artifacts" / "ab"


def test_second_base(profile, best, base, artifact_entry, tmp_path):
    """What is not beside the profile is looked for in the cache."""
    entry = artifact_entry(base, "artifacts/ab/model.onnx")
    assert find_artifacts(profile(best=best(artifacts=[entry])), [tmp_path, base]) == base / "artifacts" / "ab"


def test_changed_byte(profile, best, base, artifact_entry):
    """A file of the same size with another content is refused."""
    entry = artifact_entry(base, "artifacts/ab/model.onnx")
    (base / "artifacts/ab/model.onnx").write_bytes(b"grapf")
    with pytest.raises(ProfileMismatch, match=r"another content .*tune again here, or copy"):
        find_artifacts(profile(best=best(artifacts=[entry])), [base])


def test_changed_size(profile, best, base, artifact_entry):
    """A file of another size is refused."""
    entry = artifact_entry(base, "artifacts/ab/model.onnx")
    (base / "artifacts/ab/model.onnx").write_bytes(b"gra")
    with pytest.raises(ProfileMismatch, match="has 3 bytes where the profile says 5"):
        find_artifacts(profile(best=best(artifacts=[entry])), [base])


def test_missing_artifact(profile, best, base, artifact_entry):
    """A missing file is named."""
    entry = artifact_entry(base, "artifacts/ab/model.onnx")
    (base / "artifacts/ab/model.onnx").unlink()
    with pytest.raises(ProfileMismatch, match=r"model\.onnx: No such file"):
        find_artifacts(profile(best=best(artifacts=[entry])), [base])


@pytest.mark.parametrize("link", ["artifacts/ab/model.onnx", "artifacts/ab"])
def test_links_out_are_refused(profile, best, base, artifact_entry, link):
    """A link that leads out of the base is refused, whatever it holds."""
    entry = artifact_entry(base, "artifacts/ab/model.onnx")
    outside = (base / link).rename(base.parent / "outside")
    (base / link).symlink_to(outside)
    with pytest.raises(ProfileMismatch, match="links out of"):
        find_artifacts(profile(best=best(artifacts=[entry])), [base])


def test_links_inside_are_allowed(profile, best, base, artifact_entry):
    """A link within the base is served: hub caches are made of them."""
    entry = artifact_entry(base, "artifacts/ab/model.onnx")
    (base / "artifacts/ab/model.onnx").rename(base / "blob")
    (base / "artifacts/ab/model.onnx").symlink_to(base / "blob")
    assert find_artifacts(profile(best=best(artifacts=[entry])), [base]) == base / "artifacts" / "ab"
