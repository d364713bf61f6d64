"""The artifact store: entries are whole or absent, whatever ends a build."""

import contextlib
import fcntl
import os
import subprocess
import sys

import pytest

from tuner.artifacts import store as store_module
from tuner.artifacts.places import cache_directory
from tuner.artifacts.store import FAILURE, MANIFEST, Store, sha256_of, write_atomically
from tuner.errors import HostError
from tuner.records.measurement import Failure

KEY = "ab" + "0" * 62
OTHER_KEY = "cd" + "0" * 62


@pytest.fixture
def store(tmp_path):
    """Return an empty store."""
    return Store(tmp_path / "cache")


def put(store, key=KEY, files=None):
    """Build an entry of small files."""
    with store.locked(key), store.building(key) as directory:
        for name, text in (files or {"model.bin": "weights", "sub/x.json": "{}"}).items():
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_text(text)
        return store.put(key, {"what": "test"}, directory, 1.5)


def leftovers(store):
    """Return every path below the store but locks."""
    return sorted(path.name for path in store.directory.rglob("*") if not path.name.endswith(".lock"))


def test_absent_entry(store):
    """What was never built is absent."""
    assert store.find(KEY) is None


def test_entry_is_found(store):
    """What was put is found, manifest and files."""
    manifest = put(store)
    assert store.find(KEY) == manifest


def test_manifest_describes_every_file(store):
    """Paths are relative, sizes and digests those of the files."""
    manifest = put(store)
    described = [(file.path, file.bytes, file.sha256) for file in manifest.files]
    expected = [
        (name, (store.path(KEY) / name).stat().st_size, sha256_of(store.path(KEY) / name))
        for name in ("model.bin", "sub/x.json")
    ]
    assert described == expected


def test_entry_is_found_by_another_process(store, tmp_path):
    """A second store on the same directory sees the entry."""
    put(store)
    assert Store(tmp_path / "cache").find(KEY) is not None


def test_failed_build_leaves_nothing(store):
    """An exception in a build leaves no directory behind."""
    with contextlib.suppress(ValueError), store.building(KEY) as directory:
        (directory / "half").write_text("x")
        raise ValueError("the build failed")
    assert leftovers(store) == ["ab"]


def test_crash_before_the_rename_leaves_no_entry(store):
    """A process that dies in the middle of a build leaves nothing that counts as an entry."""
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom tuner.artifacts.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "with store.locked(sys.argv[2]), store.building(sys.argv[2]) as directory:\n"
        "    (directory / 'model.bin').write_text('half')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(store.root), KEY], check=False)
    assert (ended.returncode, store.find(KEY)) == (-9, None)


def test_build_after_a_crash(store):
    """The lock of a dead process is free, and a whole entry can be put."""
    test_crash_before_the_rename_leaves_no_entry(store)
    put(store)
    assert store.find(KEY) is not None


@pytest.mark.parametrize("text", ["", "{", '{"key": 1}', "[]", "\x00" * 10])
def test_damaged_manifest_counts_as_absent(store, text):
    """A manifest that cannot be read makes the entry absent."""
    put(store)
    (store.path(KEY) / MANIFEST).write_text(text)
    assert store.find(KEY) is None


def test_damaged_entry_is_put_aside(store):
    """A damaged entry is gone afterwards, so that it is built again."""
    put(store)
    (store.path(KEY) / MANIFEST).write_text("{")
    store.find(KEY)
    assert not store.path(KEY).exists()


def test_cut_file_is_noticed(store):
    """A file of another size than the manifest says makes the entry absent."""
    put(store)
    (store.path(KEY) / "model.bin").write_text("weigh")
    assert store.find(KEY) is None


def test_missing_file_is_noticed(store):
    """A missing file makes the entry absent."""
    put(store)
    (store.path(KEY) / "sub" / "x.json").unlink()
    assert store.find(KEY) is None


def test_put_replaces(store):
    """A second put is what is found."""
    put(store)
    second = put(store, files={"other.bin": "new"})
    assert store.find(KEY) == second


def test_failure_is_remembered(store):
    """A failed build is told the next time."""
    failure = Failure(stage="build", kind="timeout", message="no answer within 900 s")
    store.remember_failure(KEY, failure)
    assert store.failure(KEY) == failure


def test_failure_of_another_version_is_forgotten(store, monkeypatch):
    """What an older version of this program could not build is tried again; what it built is not built again."""
    put(store, OTHER_KEY)
    store.remember_failure(KEY, Failure(stage="build", kind="error", message="a bug of ours"))
    monkeypatch.setattr(store_module, "version", lambda _: "99.0")
    assert (store.failure(KEY), store.find(OTHER_KEY) is not None) == (None, True)


def test_failure_is_no_entry(store):
    """A remembered failure does not count as an artifact."""
    store.remember_failure(KEY, Failure(stage="build", kind="crash", message="SIGSEGV"))
    assert store.find(KEY) is None


def test_damaged_failure_is_forgotten(store):
    """A failure that cannot be read is tried again."""
    store.remember_failure(KEY, Failure(stage="build", kind="crash", message="SIGSEGV"))
    (store.path(KEY) / FAILURE).write_text("{")
    assert store.failure(KEY) is None


def test_an_artifact_replaces_a_failure(store):
    """A build that works at last is found, and the failure is gone."""
    store.remember_failure(KEY, Failure(stage="build", kind="crash", message="SIGSEGV"))
    put(store)
    assert (store.find(KEY) is not None, store.failure(KEY)) == (True, None)


def test_lock_is_held_by_one(store):
    """While one process builds, another waits: the lock file cannot be taken."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom tuner.artifacts.store import Store\n"
        "with Store(Path(sys.argv[1])).locked(sys.argv[2]):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(store.root), KEY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        holder.stdout.readline()
        lock = (store.path(KEY).parent / f".{KEY}.lock").open("w")
        with lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        holder.stdin.close()


def test_full_disk_in_put(full_disk, store):
    """A manifest that does not fit ends in one error that names the way out."""
    with full_disk(16), pytest.raises(HostError, match="--cache-dir"):
        put(store)


def test_full_disk_in_put_leaves_nothing(full_disk, store):
    """Nothing half-written stays after a full disk."""
    with full_disk(16), contextlib.suppress(HostError):
        put(store)
    assert leftovers(store) == ["ab"]


def test_full_disk_keeps_the_old_entry_or_none(full_disk, store):
    """A replacement that does not fit leaves the old entry whole."""
    first = put(store)
    with full_disk(16), contextlib.suppress(HostError):
        put(store, files={"other.bin": "new"})
    assert store.find(KEY) == first


def test_full_disk_in_remembering(full_disk, store):
    """A failure that cannot be written is simply not remembered."""
    with full_disk(4):
        store.remember_failure(KEY, Failure(stage="build", kind="crash", message="SIGSEGV"))
    assert store.failure(KEY) is None


def test_write_atomically_replaces(tmp_path):
    """The new content stands in place of the old."""
    path = tmp_path / "p.json"
    path.write_bytes(b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


def test_write_atomically_on_a_full_disk(full_disk, tmp_path):
    """The old file is as it was and no temporary file stays."""
    path = tmp_path / "p.json"
    path.write_bytes(b"old")
    with full_disk(8), contextlib.suppress(OSError):
        write_atomically(path, b"x" * 64)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("p.json", b"old")]


def test_write_atomically_tells(full_disk, tmp_path):
    """A full disk is an error of the system, not silence."""
    with full_disk(8), pytest.raises(OSError, match="File too large"):
        write_atomically(tmp_path / "p.json", b"x" * 64)


def test_cache_directory_that_is_a_file(tmp_path):
    """A cache directory that cannot be made is refused with the way out."""
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match=r"file cannot be written \(.*\): name another with --cache-dir"):
        Store(tmp_path / "file")


def test_store_is_private(store):
    """Artifacts can be read by their user alone."""
    put(store)
    modes = {oct(path.stat().st_mode & 0o077) for path in (store.directory, store.path(KEY))}
    assert modes == {"0o0"}


@pytest.mark.parametrize("spoil", ["nothing", "group writes", "all write", "a link"])
def test_fallback_that_others_may_write_is_refused(tmp_path, monkeypatch, spoil):
    """Below the temporary directory anyone may have made our cache before us, and filled it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = cache_directory(None, {})
    if spoil == "nothing":
        assert Store(place).root.stat().st_mode & 0o777 == 0o700
        assert Store(place).root == place
        return
    if spoil == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "elsewhere")
    else:
        place.mkdir()
        place.chmod(0o777 if spoil == "all write" else 0o770)
    with pytest.raises(HostError, match=r"is not this user's alone.*--cache-dir"):
        Store(place)
    assert list(place.iterdir()) == []


def test_cache_of_another_owner_is_refused(tmp_path, monkeypatch):
    """The same where another user owns it; a directory that the user names is the user's own business."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("os.getuid", lambda: 4242)
    with pytest.raises(HostError, match="another owner"):
        Store(cache_directory(None, {}))
    assert Store(tmp_path / "named").directory.is_dir()


def test_cache_option_wins(tmp_path):
    """--cache-dir is taken as it is, made absolute."""
    assert cache_directory(str(tmp_path), {"XDG_CACHE_HOME": "/x"}) == tmp_path


def test_cache_in_xdg():
    """Without the option, the user's cache directory."""
    assert str(cache_directory(None, {"XDG_CACHE_HOME": "/x"})) == "/x/autotune"


@pytest.mark.parametrize("xdg", [{}, {"XDG_CACHE_HOME": ""}, {"XDG_CACHE_HOME": "relative"}])
def test_cache_in_home(tmp_path, xdg):
    """Without that, or where it is relative, the home directory."""
    assert cache_directory(None, {"HOME": str(tmp_path)} | xdg) == tmp_path / ".cache" / "autotune"


@pytest.mark.parametrize("home", [{}, {"HOME": "/"}, {"HOME": "/nonexistent"}])
def test_cache_without_a_home(home):
    """A random user id without a home gets a directory of its own below the temporary one."""
    assert cache_directory(None, home).name == f"autotune-{os.getuid()}"
