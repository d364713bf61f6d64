"""Names and values that a config may put into an environment; a profile may come from a stranger.

Nothing here loads code, names a path, a compiler or a CPU id: those are refused by not being listed. Affinity
variables (OMP_PLACES lists, GOMP_CPU_AFFINITY, explicit KMP_AFFINITY lists) are left out too: the mask is the one
pinning mechanism. KMP_DUPLICATE_LIB_OK is never set (documented as unsafe).
"""

import re
from collections.abc import Mapping

from tuner.errors import UsageError

_COUNT = r"[1-9]\d{0,5}"
_NUMBER = r"\d{1,12}"
_SIGNED = r"-1|\d{1,12}"
_SWITCH = r"[01]"
_TRUTH = r"true|false|TRUE|FALSE|0|1"
_DECAY = r"(?:dirty_decay_ms|muzzy_decay_ms|oversize_threshold|lg_tcache_max|narenas):-?\d{1,12}"
_JEMALLOC = rf"{_DECAY}|(?:background_thread|tcache|retain):(?:true|false)|(?:metadata_thp|thp|percpu_arena):\w{{1,16}}"
_TUNABLE = (
    r"glibc\.malloc\.(?:hugetlb|arena_max|mmap_threshold|mmap_max|trim_threshold|top_pad|tcache_count|mxfast)=\d{1,12}"
)
_MODIFIER = r"granularity=(?:fine|thread|core|tile|die|node|group|socket)|(?:no)?respect|(?:no)?reset"
_ISA = r"DEFAULT|ALL|SSE41|AVX|AVX2|AVX2_VNNI(?:_2)?|AVX512_CORE(?:_(?:VNNI|BF16|FP16|AMX|AMX_FP16))?"

_PATTERNS: dict[str, str] = {
    # OpenMP, all runtimes
    "OMP_NUM_THREADS": _COUNT,
    "OMP_THREAD_LIMIT": _COUNT,
    "OMP_DYNAMIC": _TRUTH,
    "OMP_PROC_BIND": r"true|false|close|spread|master|primary",
    "OMP_PLACES": r"threads|cores|sockets|ll_caches|numa_domains",
    "OMP_WAIT_POLICY": r"active|passive|ACTIVE|PASSIVE",
    "OMP_SCHEDULE": rf"(?:(?:non)?monotonic:)?(?:static|dynamic|guided|auto)(?:,{_COUNT})?",
    "OMP_MAX_ACTIVE_LEVELS": _NUMBER,
    "OMP_STACKSIZE": r"\d{1,7}[BKMG]?",
    "GOMP_SPINCOUNT": r"\d{1,15}|INFINITE|INFINITY|infinite|infinity",
    "KMP_BLOCKTIME": r"\d{1,9}(?:us|ms)?|infinite",
    "KMP_AFFINITY": rf"none|disabled|(?:(?:{_MODIFIER}),)*(?:compact|scatter|balanced)(?:,\d{{1,3}}){{0,2}}",
    "KMP_HW_SUBSET": r"\d{1,4}[sdlnct](?:,\d{1,4}[sdlnct])*",
    "KMP_LIBRARY": r"throughput|turnaround|serial",
    # Other pools
    "MKL_NUM_THREADS": _COUNT,
    "MKL_DYNAMIC": _TRUTH,
    "MKL_ENABLE_INSTRUCTIONS": r"SSE4_2|AVX|AVX2|AVX512|AVX512_E[1-5]",
    "OPENBLAS_NUM_THREADS": _COUNT,
    "NUMEXPR_NUM_THREADS": _COUNT,
    "RAYON_NUM_THREADS": _COUNT,
    "TOKENIZERS_PARALLELISM": r"true|false",
    # oneDNN
    "ONEDNN_MAX_CPU_ISA": _ISA,
    "DNNL_MAX_CPU_ISA": _ISA,
    "ONEDNN_CPU_ISA_HINTS": r"NO_HINTS|PREFER_YMM",
    "ONEDNN_DEFAULT_FPMATH_MODE": r"STRICT|BF16|F16|TF32|ANY",
    "DNNL_DEFAULT_FPMATH_MODE": r"STRICT|BF16|F16|TF32|ANY",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": _NUMBER,
    "DNNL_PRIMITIVE_CACHE_CAPACITY": _NUMBER,
    "LRU_CACHE_CAPACITY": _NUMBER,
    # PyTorch
    "ATEN_CPU_CAPABILITY": r"default|avx2|avx512|sve256|vsx|zvector",
    "THP_MEM_ALLOC_ENABLE": _SWITCH,
    "TORCHINDUCTOR_FREEZING": _SWITCH,
    "TORCHINDUCTOR_CPP_WRAPPER": _SWITCH,
    "TORCHINDUCTOR_MAX_AUTOTUNE": _SWITCH,
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM": _SWITCH,
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS": r"(?:ATEN|CPP)(?:,(?:ATEN|CPP))?",
    "TORCHINDUCTOR_LAYOUT_OPTIMIZATION": _SWITCH,
    # CTranslate2
    "CT2_PACKED_GEMM": _SWITCH,
    "CT2_USE_MKL": _SWITCH,
    "CT2_FORCE_CPU_ISA": r"GENERIC|AVX|AVX2|AVX512|NEON",
    # Allocators
    "MALLOC_ARENA_MAX": _COUNT,
    "MALLOC_TRIM_THRESHOLD_": _SIGNED,
    "MALLOC_MMAP_THRESHOLD_": _NUMBER,
    "MALLOC_MMAP_MAX_": _NUMBER,
    "MALLOC_TOP_PAD_": _NUMBER,
    "GLIBC_TUNABLES": rf"{_TUNABLE}(?::{_TUNABLE})*",
    "MALLOC_CONF": rf"(?:{_JEMALLOC})(?:,(?:{_JEMALLOC}))*",
    "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES": _NUMBER,
    "TCMALLOC_RELEASE_RATE": r"\d{1,4}(?:\.\d{1,4})?",
    "TCMALLOC_AGGRESSIVE_DECOMMIT": _TRUTH,
    "MIMALLOC_ALLOW_LARGE_OS_PAGES": _SWITCH,
    "MIMALLOC_LARGE_OS_PAGES": _SWITCH,
    "MIMALLOC_RESERVE_HUGE_OS_PAGES": _NUMBER,
    "MIMALLOC_EAGER_COMMIT": _SWITCH,
    "MIMALLOC_ARENA_EAGER_COMMIT": r"[012]",
    "MIMALLOC_PURGE_DELAY": _SIGNED,
}
_ALLOWED = {name: re.compile(pattern, re.ASCII) for name, pattern in _PATTERNS.items()}


def allowed_names() -> tuple[str, ...]:
    """Return the names that a config may set, sorted."""
    return tuple(sorted(_ALLOWED))


def check_env(env: Mapping[str, str]) -> None:
    """Check a config's variables.

    Raises:
        UsageError: A name that is not listed, or a value that its pattern does not allow; names the variable.
    """
    for name, value in env.items():
        pattern = _ALLOWED.get(name)
        if pattern is None:
            raise UsageError(f"process.env: {name[:60]!r} may not be set by a config; take it out of process.env")
        if not pattern.fullmatch(value):
            raise UsageError(f"process.env: {name} may not be {value[:60]!r}; allowed is {pattern.pattern}")
