"""Environments of workers and of programs that the user starts."""

import pytest

from tuner.environment import allowed_names, check_env, config_environment, exec_environment, worker_environment
from tuner.errors import UsageError
from tuner.records.config import ProcessSettings

USER = {"PATH": "/bin", "HOME": "/home/u", "USER": "u", "LOGNAME": "u", "LANG": "C.UTF-8"}
PLAIN = ProcessSettings()


def compose(base, process=PLAIN, *, offline=True, preload=(), writable=lambda path: path.startswith("/home")):
    """Return a worker's environment with /c as the cache directory."""
    return worker_environment(base, process, offline=offline, cache_dir="/c", preload=preload, is_writable=writable)


@pytest.mark.parametrize(
    "name",
    [
        "OMP_NUM_THREADS",
        "KMP_AFFINITY",
        "GOMP_CPU_AFFINITY",
        "MALLOC_ARENA_MAX",
        "LD_PRELOAD",
        "LD_AUDIT",
        "GLIBC_TUNABLES",
        "MKL_NUM_THREADS",
        "ONEDNN_MAX_CPU_ISA",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "TORCHINDUCTOR_FREEZING",
        "HF_HUB_OFFLINE",
        "SECRET",
    ],
)
def test_the_users_settings_do_not_leak_into_workers(name):
    """Pools, allocators, loaders and everything unlisted stay outside."""
    assert "leak" not in compose(USER | {name: "leak"}, offline=False).values()


def test_what_a_process_needs_passes():
    """Paths and locale are the user's."""
    base = USER | {"LC_ALL": "C", "TZ": "UTC", "VIRTUAL_ENV": "/v", "LD_LIBRARY_PATH": "/l", "PYTHONPATH": "/p"}

    assert base.items() <= compose(base).items()


@pytest.mark.parametrize("name", ["HF_TOKEN", "HF_ENDPOINT", "https_proxy", "HTTPS_PROXY"])
def test_tokens_and_proxies_pass_only_online(name):
    """An offline worker holds no secret and no way out."""
    base = USER | {name: "x"}

    assert (name in compose(base), name in compose(base, offline=False)) == (False, True)


@pytest.mark.parametrize("name", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_offline_is_said_to_the_hub_libraries(name):
    """Set exactly when offline."""
    assert (compose(USER).get(name), compose(USER, offline=False).get(name)) == ("1", None)


def test_fixed_variables_are_set():
    """Telemetry is off, tokenizers do not fork pools, compiled code goes to our cache."""
    expected = {
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "TORCHINDUCTOR_CACHE_DIR": "/c/inductor",
    }

    assert expected.items() <= compose(USER).items()


def test_the_config_has_the_last_word():
    """A config's variable replaces a fixed one."""
    process = ProcessSettings(env={"TOKENIZERS_PARALLELISM": "true", "OMP_NUM_THREADS": "2"})

    assert {"TOKENIZERS_PARALLELISM": "true", "OMP_NUM_THREADS": "2"}.items() <= compose(USER, process).items()


@pytest.mark.parametrize("home", [None, "", "/", "/nonexistent"])
def test_a_home_that_cannot_be_written_is_replaced(home):
    """C37: HOME unset, the root, or missing: caches go below ours."""
    base = {"PATH": "/bin"} | ({} if home is None else {"HOME": home})

    assert compose(base)["HOME"] == "/c/home"


def test_a_user_without_a_name_gets_one():
    """C37: a random user id without passwd entry; getpass reads LOGNAME first."""
    env = compose({"PATH": "/bin"})

    assert (env["USER"], env["LOGNAME"]) == ("autotune", "autotune")


def test_one_name_serves_for_both():
    """USER alone is enough."""
    env = compose({"USER": "u"})

    assert (env["USER"], env["LOGNAME"]) == ("u", "u")


def test_caches_and_temporary_folders_that_cannot_be_written_are_replaced():
    """XDG_CACHE_HOME moves below our cache; TMPDIR is dropped so that the default applies."""
    env = compose(USER | {"XDG_CACHE_HOME": "/ro", "TMPDIR": "/ro"})

    assert (env["XDG_CACHE_HOME"], env.get("TMPDIR")) == ("/c/xdg", None)


def test_writable_directories_are_asked_of_the_system(tmp_path):
    """Without a substitute the file system decides."""
    env = worker_environment({"HOME": str(tmp_path)}, PLAIN, offline=True, cache_dir="/c")

    assert str(tmp_path) == env["HOME"]


def test_preloaded_libraries_are_joined():
    """The allocator comes first."""
    assert compose(USER, preload=["/l/a.so", "/l/b.so"])["LD_PRELOAD"] == "/l/a.so:/l/b.so"


@pytest.mark.parametrize("path", ["", "/a b.so", "/a:b.so", "/a\nb.so"])
def test_a_preload_path_that_would_be_taken_apart_is_refused(path):
    """ld.so splits at spaces and colons."""
    with pytest.raises(UsageError, match="cannot preload"):
        compose(USER, preload=[path])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OMP_NUM_THREADS", "8"),
        ("OMP_PROC_BIND", "close"),
        ("OMP_PLACES", "cores"),
        ("OMP_WAIT_POLICY", "passive"),
        ("OMP_SCHEDULE", "static"),
        ("GOMP_SPINCOUNT", "INFINITY"),
        ("KMP_BLOCKTIME", "infinite"),
        ("KMP_BLOCKTIME", "0"),
        ("KMP_AFFINITY", "granularity=fine,compact,1,0"),
        ("KMP_AFFINITY", "none"),
        ("KMP_HW_SUBSET", "1s,4c,1t"),
        ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_AMX"),
        ("ONEDNN_DEFAULT_FPMATH_MODE", "BF16"),
        ("DNNL_DEFAULT_FPMATH_MODE", "BF16"),
        ("MALLOC_ARENA_MAX", "1"),
        ("MALLOC_TRIM_THRESHOLD_", "-1"),
        ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=2"),
        ("MALLOC_CONF", "background_thread:true,dirty_decay_ms:-1,metadata_thp:auto"),
        ("THP_MEM_ALLOC_ENABLE", "1"),
        ("LRU_CACHE_CAPACITY", "1024"),
        ("TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS", "CPP,ATEN"),
    ],
)
def test_knobs_worth_searching_are_allowed(name, value):
    """What the search spaces use passes the check and arrives unchanged."""
    assert {name: value} == config_environment(ProcessSettings(env={name: value}))


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PATH",
        "CC",
        "CXX",
        "HOME",
        "HF_ENDPOINT",
        "http_proxy",
        "TORCHINDUCTOR_CACHE_DIR",
        "KMP_DUPLICATE_LIB_OK",
        "GOMP_CPU_AFFINITY",
        "ORT_DYLIB_PATH",
        "omp_num_threads",
        "OMP_NUM_THREADS ",
        "OMP_NUM_THREADS\n",
        "",
    ],
)
def test_other_names_are_refused_by_name(name):
    """A profile from a stranger loads no code, moves no path and reaches no server."""
    with pytest.raises(UsageError, match=r"process\.env"):
        check_env({name: "1"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OMP_NUM_THREADS", "0"),
        ("OMP_NUM_THREADS", "4\n"),
        ("OMP_NUM_THREADS", "4,2"),
        ("OMP_NUM_THREADS", "٤"),
        ("OMP_NUM_THREADS", ""),
        ("OMP_PLACES", "{0,1}"),
        ("KMP_AFFINITY", "proclist=[0,1],explicit"),
        ("MALLOC_CONF", "prof:true,prof_prefix:/tmp/x"),
        ("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=1"),
        ("GLIBC_TUNABLES", "glibc.malloc.check=3"),
        ("ONEDNN_MAX_CPU_ISA", "../x"),
        ("TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS", "CPP,$(id)"),
    ],
)
def test_other_values_are_refused_and_the_variable_named(name, value):
    """A listed name does not let every value in."""
    with pytest.raises(UsageError, match=name):
        check_env({name: value})


def test_no_listed_name_loads_code_or_moves_a_path():
    """The list itself holds the promise."""
    forbidden = ("LD_", "PYTHON", "PATH", "CC", "CXX", "HF_", "HOME", "TMP")

    assert [name for name in allowed_names() if name.startswith(forbidden) or name.endswith(("_DIR", "_PATH"))] == []


def test_exec_keeps_the_users_environment_but_for_conflicts():
    """The user's program gets everything else unchanged."""
    base = USER | {
        "SECRET": "s",
        "OMP_NUM_THREADS": "64",
        "GOMP_CPU_AFFINITY": "0",
        "KMP_AFFINITY": "x",
        "MALLOC_CONF": "y",
    }
    process = ProcessSettings(env={"OMP_NUM_THREADS": "4"})

    assert exec_environment(base, process) == USER | {"SECRET": "s", "OMP_NUM_THREADS": "4"}


def test_exec_replaces_competing_preloads_only():
    """Two allocators or OpenMP runtimes in one process crash; other preloads are the user's."""
    base = {"LD_PRELOAD": "/u/libtcmalloc.so.4 /u/libtrace.so:/u/libiomp5.so"}

    env = exec_environment(base, PLAIN, preload=["/l/libjemalloc.so.2"])

    assert env == {"LD_PRELOAD": "/l/libjemalloc.so.2:/u/libtrace.so"}


def test_exec_without_preloads_leaves_none():
    """A removed preload leaves no empty variable."""
    assert exec_environment({"LD_PRELOAD": "/u/libjemalloc.so"}, PLAIN) == {}


def test_exec_checks_the_config_too():
    """A profile is no more trusted here."""
    with pytest.raises(UsageError, match="LD_PRELOAD"):
        exec_environment({}, ProcessSettings(env={"LD_PRELOAD": "/x.so"}))
