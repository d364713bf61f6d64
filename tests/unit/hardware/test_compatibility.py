"""What follows when a profile meets another host or other libraries."""

import json

import pytest

from tuner.hardware import detect
from tuner.hardware.compatibility import Needs, compare_hosts, compare_software, strongest


@pytest.fixture
def host(host_root):
    """Return the two-socket server."""
    return detect(host_root("server-2s64c"))


@pytest.fixture
def then(host):
    """Return what a profile of that server holds."""
    return json.loads(host.to_json())


def outcome(differences):
    """Return fields with their consequences."""
    return [(difference.field, difference.consequence) for difference in differences]


def test_the_same_host_differs_in_nothing(then, host):
    """A profile holds where it was made."""
    assert compare_hosts(then, host, Needs(n_cpus=128)) == ()


def test_a_profile_without_hardware_differs_in_nothing(host):
    """What a profile does not say is no difference."""
    assert compare_hosts({}, host, Needs(is_isa_bound=False)) == ()


def test_a_lost_instruction_set_refuses_artifacts_bound_to_it(then, host):
    """bf16 and int8 kernels were validated on another instruction set."""
    (difference,) = compare_hosts(then | {"isa": [*then["isa"], "amx_bf16"]}, host)

    assert (
        difference.field,
        difference.then,
        difference.now,
        difference.consequence,
    ) == ("isa", "amx_bf16", None, "refuse")


def test_a_lost_instruction_set_lets_float32_run(then, host):
    """Nothing is bound to it, but speeds are to be measured again."""
    differences = compare_hosts(then | {"isa": [*then["isa"], "amx_bf16"]}, host, Needs(is_isa_bound=False))

    assert outcome(differences) == [("isa", "recheck")]


def test_a_gained_instruction_set_is_rechecked(then, host):
    """Other kernels are picked: outputs may move (C26)."""
    isa = [flag for flag in then["isa"] if flag != "avx512_vnni"]

    assert outcome(compare_hosts(then | {"isa": isa}, host)) == [("isa", "recheck")]


def test_flags_that_no_kernel_uses_do_not_matter(then, host):
    """Kernels rename and add flags that engines never look at."""
    assert compare_hosts(then | {"isa": [*then["isa"], "md_clear"]}, host) == ()


def test_fewer_cpus_than_needed_refuse(then, host_root):
    """128 threads do not fit into 16 CPUs; the text says how to go on."""
    differences = compare_hosts(then, detect(host_root("server-2s64c-cpuset16")), Needs(n_cpus=128))

    assert outcome(differences)[0] == ("cpu_budget", "refuse")
    assert "adapted to 16" in differences[0].detail


def test_fewer_cpus_with_room_for_the_config_adapt(then, host_root):
    """Eight threads fit: ids are chosen anew."""
    differences = compare_hosts(then, detect(host_root("server-2s64c-cpuset16")), Needs(n_cpus=8))

    assert outcome(differences) == [("physical_cores", "recheck"), ("cpu_nodes", "recheck"), ("cpu_budget", "adapt")]


def test_less_memory_than_the_peak_refuses(then, host):
    """The config would be killed."""
    differences = compare_hosts(then, host, Needs(peak_rss_bytes=600_000_000_000))

    assert outcome(differences) == [("memory_budget_bytes", "refuse")]


def test_memory_that_just_suffices_holds(then, host):
    """A limit exactly met holds."""
    assert compare_hosts(then, host, Needs(peak_rss_bytes=512_000_000_000)) == ()


@pytest.mark.parametrize(
    ("field", "value", "consequence"),
    [
        ("architecture", "aarch64", "refuse"),
        ("vendor", "AuthenticAMD", "recheck"),
        ("cpu_family", "23", "recheck"),
        ("cpu_model", "another", "recheck"),
        ("thp", "always", "recheck"),
        ("microcode", "0x1", "warn"),
        ("kernel", "6.9.0", "warn"),
        ("governor", "powersave", "warn"),
        ("turbo", False, "warn"),
        ("clocksource", "hpet", "warn"),
        ("max_mhz", 1000.0, "ignore"),
        ("quota_cpus", 200.0, "adapt"),
    ],
)
def test_each_field_has_its_consequence(field, value, consequence, then, host):
    """Issue text and consequence come from one table."""
    assert [(field, consequence)] == outcome(compare_hosts(then | {field: value}, host))


def test_a_profile_that_hides_its_flags_is_checked_again(then, host):
    """Where nothing says which instructions int8 or bfloat16 was made with, nothing says that it holds."""
    without = {name: value for name, value in then.items() if name != "isa"}
    assert outcome(compare_hosts(without, host, Needs(is_isa_bound=True))) == [("isa", "recheck")]
    assert compare_hosts(without, host, Needs(is_isa_bound=False)) == ()


def test_another_host_name_is_no_difference(then, host):
    """Hosts of one kind share profiles."""
    assert compare_hosts(then | {"hostname": "a"}, host) == ()


@pytest.mark.parametrize("value", [None, [], {}, "x", -1])
def test_fields_of_foreign_types_never_raise(value, then, host):
    """A profile is data from a stranger."""
    strange = dict.fromkeys([*then, "isa", "cpu_budget"], value)

    assert isinstance(compare_hosts(strange, host), tuple)


def test_a_pinned_profile_warns_where_masks_cannot_be_set(then, host):
    """C13: it loads and says so."""
    without = host.model_copy(update={"is_pinning_available": False})

    assert outcome(compare_hosts(then, without, Needs(is_pinned=True))) == [("is_pinning_available", "warn")]


@pytest.mark.parametrize(
    ("name", "before", "after", "consequence"),
    [
        ("torch", "2.13.0", "2.13.1", "warn"),
        ("torch", "2.13.0+cpu", "2.13.0", "warn"),
        ("torch", "2.13.0", "2.14.0", "fallback"),
        ("transformers", "5.1.0", "6.0.0", "fallback"),
        ("onnxruntime", "1.32.0", "1.31.0", "fallback"),
        ("openvino", "nightly", "weekly", "fallback"),
        ("numpy", "1.26.0", "2.4.0", "warn"),
    ],
)
def test_versions_have_their_consequence(name, before, after, consequence):
    """Patches warn, minors of engines fall back, libraries that pick no kernels warn."""
    assert [(f"software.{name}", consequence)] == outcome(compare_software({name: before}, {name: after}))


def test_a_missing_engine_refuses_with_the_remedy():
    """What to install is said."""
    (difference,) = compare_software({"openvino": "2026.1.0"}, {})

    assert (
        difference.consequence,
        difference.detail,
    ) == ("refuse", "openvino is not installed here; install openvino==2026.1.0")


def test_further_software_does_not_matter():
    """Only what the profile names counts."""
    assert compare_software({"torch": "2.13.0"}, {"torch": "2.13.0", "openvino": "2026.1.0"}) == ()


def test_the_strongest_consequence_decides():
    """Refusal outranks warnings; nothing is None."""
    differences = compare_software({"numpy": "1.0", "torch": "2.1.0"}, {"numpy": "2.0", "torch": "2.2.0"})

    assert (strongest(differences), strongest(())) == ("fallback", None)
