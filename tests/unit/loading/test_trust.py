"""A profile of a stranger that tries each thing a profile must not do: refused, with one line."""

import json
import os
import pickle

import pytest

from tuner.cli.app import run
from tuner.errors import ProfileMismatch
from tuner.loading.files import find_artifacts, read_profile
from tuner.loading.native import is_native

FORBIDDEN_VARIABLES = {
    "LD_PRELOAD": "/tmp/x.so",  # noqa: S108 - a made-up attack
    "LD_AUDIT": "x.so",
    "LD_LIBRARY_PATH": "x",
    "PYTHONPATH": "x",
    "PYTHONSTARTUP": "x.py",
    "PATH": "x",
    "CC": "x",
    "CXX": "x",
    "TORCHINDUCTOR_CACHE_DIR": "x",
    "OMP_TOOL_LIBRARIES": "x.so",
    "KMP_DUPLICATE_LIB_OK": "TRUE",
    "OMP_NUM_THREADS": "0",
    "OMP_PLACES": "{0},{1}",
    "GLIBC_TUNABLES": "glibc.malloc.check=3",
    "MALLOC_CONF": "stats_print:true",
    "MALLOC_ARENA_MAX": "1\nLD_PRELOAD=x",
}
FORBIDDEN_NAMES = ["/usr/lib/libjemalloc.so", "./x.so", "../jemalloc", "jemalloc.so.2", "", "libc", "jemalloc:x"]


@pytest.fixture
def write(tmp_path, profile_document):
    """Return a function that writes a profile whose best has process settings or artifacts, and other keys."""

    def make(*, process=None, artifacts=(), **changes):
        best = profile_document()["best"]
        best["config"]["process"] |= process or {}
        path = tmp_path / "p.json"
        path.write_text(json.dumps(profile_document(**{"best": {**best, "artifacts": list(artifacts)}, **changes})))
        return path

    return make


@pytest.fixture
def refused(capsys):
    """Return a function that runs a command on a profile and returns its exit code and its only line."""

    def refusal(command, path):
        code = run([command, str(path), *(["--", "true"] if command == "exec" else [])])
        (line,) = capsys.readouterr().err.splitlines()
        return code, line

    return refusal


@pytest.fixture
def native(tmp_path, artifact_entry):
    """Return a function that makes a base directory of a mode with one file, and the profile's entry for it."""

    def make(name, content, mode=0o755, folder_mode=0o700):
        base = tmp_path / "base"
        (base / "a").mkdir(parents=True)
        (base / "a" / name).write_bytes(content)
        (base / "a").chmod(folder_mode)
        base.chmod(mode)
        return base, artifact_entry(base, f"a/{name}")

    return make


@pytest.mark.parametrize("command", ["check", "exec", "env", "show", "retune"])
@pytest.mark.parametrize("name", FORBIDDEN_VARIABLES)
def test_variables(write, refused, command, name):
    """Loader, interpreter, path, compiler and unlisted values: every command that reads a profile refuses them."""
    code, line = refused(command, write(process={"env": {name: FORBIDDEN_VARIABLES[name]}}))
    assert (code, name in line) == (2, True)


@pytest.mark.parametrize("field", ["allocator", "openmp_runtime"])
@pytest.mark.parametrize("name", FORBIDDEN_NAMES)
def test_libraries_are_names(write, refused, field, name):
    """An allocator or OpenMP runtime is one of the known names, never a path."""
    code, line = refused("exec", write(process={field: name}))
    assert (code, "only a name is allowed" in line) == (2, True)


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a\\..\\x", ""])
def test_artifact_paths(write, refused, path):
    """Artifacts lie below the profile or the cache."""
    code, line = refused("check", write(artifacts=[{"path": path, "sha256": "0" * 64, "bytes": 1}]))
    assert (code, "only relative paths" in line) == (2, True)


@pytest.mark.parametrize("where", ["command", "request"])
@pytest.mark.parametrize(
    "url",
    ["postgresql://me:s3cret@db/x", "postgresql://me:s3/cret@db/x", "mysql://db/x?user=me&password=s3cret"],
    ids=["before the host", "with a slash", "among the options"],
)
def test_passwords(write, refused, where, url):
    """A password in the command or the request is not passed on, nor printed."""
    changes = {"command": ["autotune", "--storage", url]} if where == "command" else {"request": {"storage": url}}
    code, line = refused("show", write(**changes))
    assert (code, "holds a password" in line, "cret" in line) == (2, True, False)


@pytest.mark.parametrize(
    "url", ["postgresql://me:***@db/x", "mysql://db/x?password=***&user=me", "mysql://db/x?pwd=***"]
)
def test_masked_password(write, url):
    """What we write ourselves, with the password masked, is read."""
    command = ("autotune", "--storage", url)
    assert read_profile(write(command=list(command))).command == command


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.so", b"x"),
        ("model.pt2", b"x"),
        ("kernel.so.1", b"x"),
        ("weights.bin", b"\x7fELF\x02"),
        ("weights.pt", b"x"),
        ("graph.py", b"x"),
        ("weights.bin", pickle.dumps({"a": 1})),
    ],
)
def test_native_code(native, name, content):
    """What runs when it is opened is told by name or first bytes."""
    base, _ = native(name, content)
    assert is_native(base / "a" / name)


@pytest.mark.parametrize(("name", "content"), [("model.onnx", b"\x08\x08"), ("model.bin", b"\x00\x00\x80?")])
def test_plain_data(native, name, content):
    """Graphs and weights are data."""
    base, _ = native(name, content)
    assert not is_native(base / "a" / name)


def test_native_code_from_elsewhere(native, write):
    """Native code beside a profile is refused, and opened only on demand."""
    base, entry = native("model.so", b"x")
    profile = read_profile(write(artifacts=[entry]))
    with pytest.raises(ProfileMismatch, match=r"holds native code.*--trust-profile"):
        find_artifacts(profile, [base], own=base.parent / "cache")
    assert find_artifacts(profile, [base], own=None, trust_native=True) == base / "a"


def test_native_code_of_our_own_cache(native, write):
    """Our own cache, for this user only, holds what we compiled."""
    base, entry = native("model.so", b"x")
    assert find_artifacts(read_profile(write(artifacts=[entry])), [base], own=base) == base / "a"


@pytest.mark.parametrize(("mode", "folder_mode"), [(0o775, 0o700), (0o757, 0o700), (0o755, 0o755), (0o700, 0o750)])
def test_native_code_of_an_open_cache(native, write, mode, folder_mode):
    """A cache that others can write to, or whose folder they can enter, is not ours alone."""
    base, entry = native("model.so", b"x", mode, folder_mode)
    with pytest.raises(ProfileMismatch, match="holds native code"):
        find_artifacts(read_profile(write(artifacts=[entry])), [base], own=base)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_native_code_of_another_users_cache(native, write):
    """A cache that belongs to somebody else is not ours."""
    base, entry = native("model.so", b"x")
    os.chown(base, 12345, 12345)
    with pytest.raises(ProfileMismatch, match="holds native code"):
        find_artifacts(read_profile(write(artifacts=[entry])), [base], own=base)


def test_code_in_the_source(write, capsys):
    """A model that is code of the profile's choice is not run unless the caller trusts it: one line that says how."""
    path = write(model={"source": "py:evil:make", "sha256": "0" * 64, "task": "forward"})
    assert run(["check", str(path), "--json"]) == 2
    assert "--trust-code" in capsys.readouterr().err


def test_text_that_steers_a_terminal(write):
    """Control characters are taken out when a profile is read, whatever field they are in."""
    notice = {"code": "x", "detail": "red \x1b[31mtext\x9b1m\x07", "remedy": None}
    assert read_profile(write(notices=[notice])).notices[0].detail == "red [31mtext1m"
