"""Variables, preloaded libraries and memory policies of a config, in force in a real worker and read back from it."""

import os
from pathlib import Path

import pytest

from tuner.errors import TrialError
from tuner.hardware import libraries
from tuner.hardware.memory_policy import probe_memory_policy
from tuner.records.config import ProcessSettings


def test_variables_are_read_back(open_arm):
    """What the process was started with is what counts, and it is recorded."""
    asked = {"OMP_WAIT_POLICY": "passive", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    found = open_arm(ProcessSettings(env=asked)).loaded.effective.environment
    assert found == {**asked, "TOKENIZERS_PARALLELISM": "false"}


@pytest.mark.skipif(libraries.find("gomp") is None, reason="libgomp is not in a system library folder")
def test_preloaded_runtime_is_mapped(open_arm):
    """A runtime that is asked for by name is in the maps of the worker, from a system folder."""
    found = open_arm(ProcessSettings(openmp_runtime="gomp")).loaded.effective.libraries
    assert os.path.realpath(libraries.find("gomp")) in {os.path.realpath(path) for path in found.values()}


@pytest.mark.parametrize("name", libraries.ALLOCATORS)
def test_allocator_is_mapped(open_arm, name):
    """An allocator that is asked for by name is in the maps of the worker, the very file of the system folder."""
    path = libraries.find(name)
    if path is None:
        pytest.skip(libraries.absence(name))
    arm = open_arm(ProcessSettings(allocator=name))
    maps = Path(f"/proc/{arm.process.pid}/maps").read_text()
    assert os.path.realpath(path) in maps
    assert os.path.realpath(arm.loaded.effective.libraries[name]) == os.path.realpath(path)


@pytest.mark.parametrize("name", libraries.ALLOCATORS)
def test_no_other_allocator_is_mapped(open_arm, name):
    """By default, and beside another allocator, it is not there."""
    others = [None, *(other for other in libraries.ALLOCATORS if other != name and libraries.find(other))]
    found = [open_arm(ProcessSettings(allocator=other)).loaded.effective.libraries for other in others]
    assert not any(name in one for one in found)


def test_absent_allocator_names_its_package(open_arm, monkeypatch):
    """Where it is not installed the trial fails as not applied, and what to install is said."""
    monkeypatch.setattr(libraries, "find", lambda _: None)
    with pytest.raises(TrialError, match=r"jemalloc is not installed .*: apt-get install libjemalloc2") as caught:
        open_arm(ProcessSettings(allocator="jemalloc"))
    assert caught.value.kind == "not_applied"


def test_nothing_preloaded(open_arm):
    """Without a name, no OpenMP runtime is mapped by an engine that has none."""
    assert not {"gomp", "iomp5", "omp"} & open_arm().loaded.effective.libraries.keys()


def test_preload_that_is_passed_over(by_hand, load_line):
    """ld.so ignores a library it cannot load, exits 0 all the same, and the trial fails (case C44)."""
    (_, answer), code = by_hand(load_line(), env={"LD_PRELOAD": "/nonexistent.so"})
    assert (code, answer["kind"], answer["message"]) == (1, "not_applied", "LD_PRELOAD: /nonexistent.so is not mapped")


@pytest.mark.skipif(not probe_memory_policy().is_permitted, reason="set_mempolicy is not permitted here")
@pytest.mark.parametrize("policy", ["bind", "interleave"])
def test_memory_policy_is_read_back(open_arm, runner, policy):
    """The policy is the kernel's answer, with the nodes of this host."""
    found = open_arm(ProcessSettings(memory_policy=policy)).loaded.effective.memory_policy
    assert found == f"{policy}:{','.join(map(str, runner.host.membind_nodes))}"


def test_no_memory_policy(open_arm):
    """Without one, the system's own is in force, or none can be asked."""
    assert open_arm().loaded.effective.memory_policy in ("default", None)


def test_allocator_that_is_a_path(open_arm):
    """A path is never preloaded."""
    with pytest.raises(TrialError, match="not_applied"):
        open_arm(ProcessSettings(allocator="/nonexistent.so"))
