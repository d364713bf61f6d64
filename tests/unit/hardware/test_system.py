"""Instruction sets (C33), huge pages (C46), memory policy (C12), and what the fingerprint holds."""

import errno
import sys

import pytest

from tuner.hardware import detect
from tuner.hardware.cpuinfo import cpu_model, isa_flags, parse_cpuinfo
from tuner.hardware.memory_policy import PolicyProbe, describe, probe_memory_policy
from tuner.hardware.system import selected


@pytest.mark.parametrize(("features", "has_bf16"), [("fp asimd bf16 i8mm", True), ("fp asimd", False)])
def test_arm_bfloat16_is_a_feature_flag(features, has_bf16, plant):
    """C33: the flag decides whether fast-math variables are offered."""
    root = plant({"proc/cpuinfo": f"processor : 0\nFeatures : {features}\nCPU implementer : 0x41\nCPU part : 0xd0c"})

    assert has_bf16 == ("bf16" in detect(root).isa)


def test_only_flags_of_all_allowed_cpus_count():
    """A flag that one kind of core lacks cannot be used."""
    text = parse_cpuinfo("processor: 0\nflags: avx2 avx512f\n\nprocessor: 1\nflags: avx2\n")

    assert (isa_flags(text, (0, 1)), isa_flags(text, (0,))) == (("avx2",), ("avx2", "avx512f"))


def test_old_arm_states_features_once_for_all():
    """Fields outside any CPU's block hold for all."""
    text = parse_cpuinfo("Processor : ARMv7\nprocessor : 0\n\nprocessor : 1\n\nFeatures : neon vfpv4\n")

    assert isa_flags(text, (0, 1)) == ("neon", "vfpv4")


def test_riscv_letters_and_names_are_flags():
    """Single letters and names of an isa string are flags each."""
    text = parse_cpuinfo("processor : 0\nisa : rv64imav_zvfh_zba\n")

    assert isa_flags(text, (0,)) == ("a", "i", "m", "v", "zba", "zvfh")


def test_a_cpu_without_names_is_unknown():
    """Facts that cpuinfo does not state are None."""
    assert tuple(cpu_model(parse_cpuinfo(""), (0,))) == (None,) * 7


@pytest.mark.parametrize("state", ["always", "madvise", "never"])
def test_huge_page_state_is_recorded(state, sixteen):
    """C46: each of the three states is in the host's facts."""
    text = " ".join(f"[{word}]" if word == state else word for word in ("always", "madvise", "never"))

    assert state == detect(sixteen({"sys/kernel/mm/transparent_hugepage/enabled": text})).thp


def test_huge_page_state_is_in_the_fingerprint(sixteen):
    """C46: another state, another fingerprint."""
    file = "sys/kernel/mm/transparent_hugepage/enabled"
    always = detect(sixteen({file: "[always] madvise never"})).fingerprint

    assert always != detect(sixteen({file: "always madvise [never]"})).fingerprint


def test_no_brackets_no_word():
    """A file without a selection says nothing."""
    assert (selected("always"), selected(None)) == (None, None)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("proc/sys/kernel/osrelease", "6.9.0"),
        ("proc/sys/kernel/hostname", "other"),
        ("proc/meminfo", "MemTotal: 64000000 kB\nMemAvailable: 1 kB"),
        ("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3100000"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
    ],
)
def test_changes_that_only_warn_keep_the_fingerprint(file, text, sixteen):
    """Kernel, host name, free memory, clock rates and governor stay outside."""
    before = detect(sixteen({})).fingerprint

    assert before == detect(sixteen({file: text})).fingerprint


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("proc/cpuinfo", "flags: lm avx2 avx512f"),
        ("proc/self/status", "Cpus_allowed_list:\t0-7"),
        ("sys/fs/cgroup/cpu.max", "400000 100000"),
        ("sys/devices/system/cpu/cpu[0-15]/topology/core_id", "[0-7,0-7]"),
    ],
)
def test_changes_that_matter_change_the_fingerprint(file, text, sixteen):
    """Instruction set, CPUs, quota and cores are inside."""
    before = detect(sixteen({})).fingerprint

    assert before != detect(sixteen({file: text})).fingerprint


def test_other_cpu_ids_of_the_same_kind_keep_the_fingerprint(sixteen):
    """Which eight CPUs an orchestrator grants does not matter."""
    root = sixteen({})

    assert detect(root, affinity="0-7").fingerprint == detect(root, affinity="8-15").fingerprint


def test_a_denied_memory_policy_is_known():
    """C12: seccomp answers EPERM; the probe says so and raises nothing."""
    probe = probe_memory_policy(lambda: errno.EPERM)

    assert (PolicyProbe(False, errno.EPERM), "set_mempolicy: Operation not permitted (EPERM)") == (
        probe,
        describe(probe),
    )


def test_a_permitted_memory_policy_is_known():
    """Zero from the system call is permission."""
    assert PolicyProbe(True, 0) == probe_memory_policy(lambda: 0)


@pytest.mark.skipif(sys.platform != "linux", reason="a Linux system call")
def test_the_probe_answers_on_the_running_system():
    """Permitted or refused with a reason; never an exception."""
    probe = probe_memory_policy()

    assert probe.is_permitted is None or probe.is_permitted == (probe.errno == 0)


def test_a_saved_tree_is_not_probed(sixteen):
    """System calls are asked of the running system only."""
    assert None is detect(sixteen({})).is_memory_policy_permitted
