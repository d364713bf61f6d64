"""Allocators, OpenMP runtimes, malloc and huge pages as parameters of the shipped spaces."""

import pytest

from tuner.plugins import space_file
from tuner.space.facts import facts_of_host
from tuner.space.loading import load_space

MODEL = {"kind": "huggingface", "hidden_size": 384}
ENV = "process.env."


@pytest.fixture
def pytorch_on(host):
    """Return a function that resolves PyTorch's space on a host with some facts changed, at a length in tokens."""

    def resolved(length=512, concurrency=1, **changes):
        facts = facts_of_host(host.model_copy(update={"thp": "madvise", **changes}))
        workload = {"batch_size": 1, "max_length": length, "concurrency": concurrency}
        names = ("pytorch.toml", "aot_inductor.toml", "torchao_int8.toml", "process.toml")
        space = load_space([space_file(name) for name in names])
        return space.resolve(facts, MODEL, workload, fixed={"session.precision": "float32", "session.threads": "2"})

    return resolved


def values(space, name):
    """Return the values that a parameter takes in valid points, None for points without it."""
    return {point.get(name) for point in space.enumerate()}


def test_no_allocator_installed(pytorch_on):
    """Without an allocator or OpenMP runtime in a system folder there is no choice and no parameter of theirs."""
    space = pytorch_on()
    assert values(space, "process.allocator") == {"default"}
    assert values(space, "process.openmp_runtime") == {"default"}
    assert ENV + "KMP_BLOCKTIME" not in space.parameters("pytorch")


def test_installed_allocators(pytorch_on):
    """Exactly the installed ones are offered, by name, and become the configuration's allocator."""
    space = pytorch_on(allocators=("jemalloc", "mimalloc"))
    assert values(space, "process.allocator") == {"default", "jemalloc", "mimalloc"}
    assert {space.to_config(point).process.allocator for point in space.enumerate()} == {None, "jemalloc", "mimalloc"}


def test_openvino_keeps_its_allocator(host):
    """It aborts under a preloaded one, so none is tried with it, whatever is installed."""
    facts = facts_of_host(host.model_copy(update={"allocators": ("jemalloc", "tcmalloc")}))
    steps = ("ov_convert", "onnx_export", "ort_sensitivity", "nncf_int8", "ov_weights")
    names = ("openvino.toml", "process.toml", *(f"{step}.toml" for step in steps))
    space = load_space([space_file(name) for name in names]).resolve(facts, MODEL, {"batch_size": 1, "max_length": 512})
    assert values(space, "process.allocator") == {"default"}


def test_glibc_settings_never_with_a_preload(pytorch_on):
    """MALLOC_* and glibc's tunables mean nothing to another allocator."""
    space = pytorch_on(allocators=("jemalloc",), concurrency=4)
    for point in space.enumerate():
        names = {name.removeprefix(ENV) for name, value in point.items() if name.startswith(ENV) and value}
        if point["process.allocator"] != "default":
            assert not any(name.startswith(("MALLOC_", "GLIBC_")) for name in names)


def test_thresholds_come_together(pytorch_on):
    """One threshold alone would switch glibc's adapting off."""
    space = pytorch_on()
    found = {
        (env.get("MALLOC_MMAP_THRESHOLD_"), env.get("MALLOC_TRIM_THRESHOLD_"))
        for env in (space.to_config(point).process.env for point in space.enumerate())
    }
    assert found == {(None, None), ("33554432", "1073741824")}


def test_small_activations_leave_malloc_alone(pytorch_on):
    """Where no page fault is saved, thresholds and huge pages are not tried."""
    space = pytorch_on(length=128)
    names = {name for point in space.enumerate() for name in space.to_config(point).process.env}
    assert names == {"OMP_WAIT_POLICY"}


@pytest.mark.parametrize("state", ["never", None])
def test_huge_pages_need_the_system(pytorch_on, state):
    """Switched off, or in an unknown state, huge pages are not asked for."""
    space = pytorch_on(thp=state)
    names = {name for point in space.enumerate() for name in space.to_config(point).process.env}
    assert not names & {"THP_MEM_ALLOC_ENABLE", "GLIBC_TUNABLES"}


def test_huge_pages_always_on(pytorch_on):
    """Where every allocation gets huge pages, glibc need not ask; torch aligns its blocks all the same."""
    space = pytorch_on(thp="always")
    names = {name for point in space.enumerate() for name in space.to_config(point).process.env}
    assert "THP_MEM_ALLOC_ENABLE" in names
    assert "GLIBC_TUNABLES" not in names


def test_kmp_only_with_its_runtime(pytorch_on):
    """KMP_* stands only beside a preloaded libiomp5, GOMP's and OMP's waiting only without."""
    space = pytorch_on(openmp_runtimes=("gomp", "iomp", "iomp5"))
    for point in space.enumerate():
        process = space.to_config(point).process
        allowed = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} if process.openmp_runtime is None else {"KMP_BLOCKTIME"}
        waiting = {name for name in process.env if name.startswith(("OMP_", "GOMP_", "KMP_"))}
        assert waiting <= allowed


def test_one_arena_setting_for_one_caller(pytorch_on):
    """Arenas are a matter of several callers."""
    assert values(pytorch_on(), ENV + "MALLOC_ARENA_MAX") == {None}
    assert values(pytorch_on(concurrency=4), ENV + "MALLOC_ARENA_MAX") >= {"", "1", "4"}
