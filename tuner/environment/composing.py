"""Composes whole environments from the user's and a config's; it reads no variable and sets none itself."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from tuner.environment.allowing import check_env
from tuner.errors import UsageError
from tuner.records.config import ProcessSettings

_PASSED = frozenset({
    "PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "USER", "LOGNAME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
    "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE",
    "LD_LIBRARY_PATH", "CC", "CXX", "CPATH", "LIBRARY_PATH",
    "HF_HOME", "HF_HUB_CACHE", "HF_MODULES_CACHE", "SYSTEMROOT", "TEMP", "TMP", "USERPROFILE", "COMSPEC",
})  # fmt: skip
_PASSED_PREFIXES = ("LC_", "AUTOTUNE_")
_PASSED_ONLINE = frozenset({
    "HF_ENDPOINT", "HF_TOKEN", "HF_HUB_DOWNLOAD_TIMEOUT", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "all_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
})  # fmt: skip
_FIXED = {
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONHASHSEED": "0",
    "PYTHONUNBUFFERED": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "CI": "true",  # the one switch of OpenVINO's converter that keeps its telemetry off without a file in HOME
}
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
_CONFLICTING = (
    "OMP_", "KMP_", "GOMP_", "LIBOMP_", "MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "VECLIB_", "NUMEXPR_", "RAYON_",
    "ONEDNN_", "DNNL_", "MALLOC_", "GLIBC_TUNABLES", "TCMALLOC_", "MIMALLOC_", "_RJEM_", "JEMALLOC_",
    "THP_MEM_ALLOC_ENABLE", "LRU_CACHE_CAPACITY", "ATEN_CPU_CAPABILITY", "CT2_", "TORCHINDUCTOR_FREEZING",
    "TORCHINDUCTOR_CPP_WRAPPER", "TORCHINDUCTOR_MAX_AUTOTUNE", "TORCHINDUCTOR_LAYOUT_OPTIMIZATION",
)  # fmt: skip
_PRELOADABLE = ("libjemalloc", "libtcmalloc", "libmimalloc", "libtbbmalloc", "libgomp", "libiomp5", "libomp")
_NAME_OF_NOBODY = "autotune"


def worker_environment(
    base: Mapping[str, str],
    process: ProcessSettings,
    *,
    offline: bool,
    cache_dir: str,
    preload: Sequence[str] = (),
    is_writable: Callable[[str], bool] | None = None,
) -> dict[str, str]:
    """Return the whole environment of a worker or build process.

    Thread-pool, allocator and loader variables of the user do not pass; HOME, XDG_CACHE_HOME and TMPDIR pass only if
    they can be written, caches of engines lie below `cache_dir`, and USER and LOGNAME are always there (a random user
    id has no passwd entry and ``getpass.getuser`` would fail).

    Args:
        base: The user's environment.
        process: The config's settings; only `env` is used, `preload` stands for the resolved libraries.
        offline: Whether the process is kept off the network.
        cache_dir: Absolute path of our cache directory.
        preload: Absolute paths of libraries for LD_PRELOAD.
        is_writable: Tells whether a directory can be written; asks the system when None.

    Raises:
        UsageError: A variable of the config that is not allowed, or a preload path that ld.so would take apart.
    """
    writable = is_writable or _is_writable_directory
    env = {name: value for name, value in base.items() if _passes(name, offline=offline)}
    for name, place in (("HOME", "home"), ("XDG_CACHE_HOME", "xdg")):
        if not writable(env.get(name, "")) and (name == "HOME" or name in env):
            env[name] = f"{cache_dir}/{place}"
    if not writable(env.get("TMPDIR", "")):
        env.pop("TMPDIR", None)
    name_of_user = env.get("LOGNAME") or env.get("USER") or _NAME_OF_NOBODY
    env |= {"USER": env.get("USER") or name_of_user, "LOGNAME": name_of_user}
    env |= _FIXED | (_OFFLINE if offline else {})
    env |= {
        "TORCHINDUCTOR_CACHE_DIR": f"{cache_dir}/inductor",
        "TRITON_CACHE_DIR": f"{cache_dir}/triton",
        "TORCH_EXTENSIONS_DIR": f"{cache_dir}/torch_extensions",
    }
    return env | config_environment(process, preload)


def exec_environment(
    base: Mapping[str, str], process: ProcessSettings, *, preload: Sequence[str] = ()
) -> dict[str, str]:
    """Return the user's whole environment with a config in force, for a program that the user starts.

    The user's variables for thread pools, allocators and kernels give way to the config's; other libraries that the
    user preloads stay, after ours.

    Raises:
        UsageError: As `worker_environment`.
    """
    env = {name: value for name, value in base.items() if not name.startswith(_CONFLICTING)}
    kept = [path for path in env.pop("LD_PRELOAD", "").replace(" ", ":").split(":") if path and not _competes(path)]
    return env | config_environment(process, (*preload, *kept))


def config_environment(process: ProcessSettings, preload: Sequence[str] = ()) -> dict[str, str]:
    """Return only the variables that a config asks for, LD_PRELOAD included.

    Raises:
        UsageError: As `worker_environment`.
    """
    check_env(process.env)
    env = dict(process.env)
    for path in preload:
        if not path or ":" in path or any(letter.isspace() for letter in path):
            raise UsageError(
                f"cannot preload {path!r}: LD_PRELOAD has no way to write a space or a colon; move the library"
            )
    if preload:
        env["LD_PRELOAD"] = ":".join(preload)
    return env


def _passes(name: str, *, offline: bool) -> bool:
    """Return whether a variable of the user reaches a worker."""
    return name in _PASSED or name.startswith(_PASSED_PREFIXES) or (name in _PASSED_ONLINE and not offline)


def _competes(path: str) -> bool:
    """Return whether a preloaded library is an allocator or an OpenMP runtime."""
    return PurePath(path).name.startswith(_PRELOADABLE)


def _is_writable_directory(path: str) -> bool:
    """Return whether a directory exists and can be written."""
    return bool(path) and path != "/" and os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK)  # noqa: PTH112
