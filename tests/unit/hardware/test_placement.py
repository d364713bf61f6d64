"""Placements on saved hosts: which CPUs, never others than the allowed ones (C05, C09, C10, C22)."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tuner.errors import UsageError
from tuner.hardware import detect
from tuner.hardware.placement import choices, groups, resolve, resolve_instances
from tuner.records.config import Placement

NAMES = [
    "server-2s64c",
    "server-2s64c-cpuset16",
    "xeon-snc4",
    "epyc-7702",
    "graviton3",
    "hybrid-pmu",
    "vm-6s1c",
    "vm-1cpu",
]


def placement(scope, policy, n_cpus=None, core_class=None):
    """Return a placement."""
    return Placement(scope=scope, policy=policy, n_cpus=n_cpus, core_class=core_class)


@pytest.mark.parametrize(
    ("name", "asked", "cpus"),
    [
        ("server-2s64c", placement("all", "none"), "0-127"),
        ("server-2s64c", placement("package", "none", 5), "0-127"),
        ("server-2s64c", placement("all", "spread"), "0-127"),
        ("server-2s64c", placement("all", "spread", 64), "0-63"),
        ("server-2s64c", placement("all", "spread", 4), "0-1,32-33"),
        ("server-2s64c", placement("all", "compact", 4), "0-1,64-65"),
        ("server-2s64c", placement("package", "spread", 32), "0-31"),
        ("server-2s64c", placement("package", "spread", 33), "0-31,64"),
        ("server-2s64c", placement("node", "compact"), "0-31,64-95"),
        ("server-2s64c-cpuset16", placement("package", "spread", 8), "8-15"),
        ("server-2s64c-cpuset16", placement("all", "compact", 8), "8-11,72-75"),
        ("xeon-snc4", placement("node", "spread", 14), "0-13"),
        ("xeon-snc4", placement("node", "compact"), "0-13,112-125"),
        ("xeon-snc4", placement("package", "spread", 56), "0-55"),
        ("xeon-snc4", placement("all", "compact", 28), "0-13,112-125"),
        ("xeon-snc4", placement("all", "spread", 8), "0,14,28,42,56,70,84,98"),
        ("epyc-7702", placement("cache", "compact"), "0-3,64-67"),
        ("epyc-7702", placement("cache", "spread", 4), "0-3"),
        ("epyc-7702", placement("all", "spread", 16), "0,4,8,12,16,20,24,28,32,36,40,44,48,52,56,60"),
        ("hybrid-pmu", placement("all", "spread", 6, "performance"), "0,2,4,6,8,10"),
        ("hybrid-pmu", placement("all", "spread", 12, "performance"), "0-11"),
        ("hybrid-pmu", placement("all", "compact", 4, "performance"), "0-3"),
        ("hybrid-pmu", placement("all", "spread", None, "efficiency"), "12-19"),
        ("hybrid-pmu", placement("all", "spread", 14), "0,2,4,6,8,10,12-19"),
        ("hybrid-pmu", placement("all", "spread", 20), "0-19"),
        ("memory-only-node", placement("node", "spread", 2), "0-1"),
        ("no-sysfs", placement("cache", "compact", 2), "0-1"),
        ("vm-1cpu", placement("cache", "spread", 1), "0"),
    ],
)
def test_cpus_are_those_chosen_by_hand(name, asked, cpus, host_root, spread):
    """Spread takes cores first and goes round the caches; compact fills siblings and neighbours."""
    (expected,) = spread([cpus])

    assert tuple(expected) == resolve(asked, detect(host_root(name)))


@given(
    name=st.sampled_from(NAMES),
    asked=st.builds(
        Placement,
        scope=st.sampled_from(["all", "package", "node", "cache"]),
        policy=st.sampled_from(["none", "spread", "compact"]),
        n_cpus=st.none() | st.integers(min_value=1, max_value=300),
        core_class=st.sampled_from([None, "performance", "efficiency", "uniform"]),
    ),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
def test_no_placement_leaves_the_allowed_cpus(hosts, name, asked):
    """C05: whatever is asked, the answer is a refusal or ids from the mask, as many as asked."""
    host = hosts(name)
    try:
        cpus = resolve(asked, host)
    except UsageError:
        return

    assert set(cpus) <= set(host.allowed_cpus)
    assert len(cpus) == (asked.n_cpus if asked.n_cpus and asked.policy != "none" else len(cpus))
    assert cpus == tuple(sorted(set(cpus)))


@pytest.fixture(scope="session")
def hosts(host_root):
    """Return a function from a name to a detected host, detected once."""
    detected = {}

    def host_of(name):
        if name not in detected:
            detected[name] = detect(host_root(name))
        return detected[name]

    return host_of


@pytest.mark.parametrize(
    ("name", "asked", "text"),
    [
        ("server-2s64c-cpuset16", placement("all", "spread", 17), "17 CPUs asked for, but scope 'all' holds 16 here"),
        ("server-2s64c", placement("package", "spread", 65), "scope 'package' holds 64 here"),
        ("hybrid-pmu", placement("all", "spread", 9, "efficiency"), "of kind efficiency holds 8 here"),
        ("graviton3", placement("all", "spread", 1, "performance"), "no 'performance' cores are allowed here"),
    ],
)
def test_more_than_there_is_is_refused(name, asked, text, host_root):
    """The error says what was asked, what there is and what to do."""
    with pytest.raises(UsageError, match=text):
        resolve(asked, detect(host_root(name)))


@pytest.mark.parametrize(
    ("name", "asked", "n", "parts"),
    [
        ("server-2s64c", placement("all", "spread", 32), 2, ["0-31", "32-63"]),
        (
            "server-2s64c",
            placement("all", "compact"),
            4,
            ["0-15,64-79", "16-31,80-95", "32-47,96-111", "48-63,112-127"],
        ),
        ("server-2s64c", placement("package", "spread", 16), 2, ["0-15", "32-47"]),
        ("server-2s64c", placement("package", "spread", 16), 4, ["0-15", "16-31", "32-47", "48-63"]),
        ("server-2s64c-cpuset16", placement("node", "compact", 4), 3, ["8-9,72-73", "10-11,74-75", "12-13,76-77"]),
        ("server-2s64c-cpuset16", placement("all", "spread", 5), 3, ["8-10,72-73", "11-12,74-76", "13-15,77-78"]),
        ("server-2s64c-cpuset16", placement("all", "spread"), 3, ["8-9,72-73", "10-11,74-75", "12-13,76-77"]),
        ("xeon-snc4", placement("all", "spread", 8), 2, ["0-1,14-15,28-29,42-43", "56-57,70-71,84-85,98-99"]),
        ("xeon-snc4", placement("node", "spread", 14), 2, ["0-13", "14-27"]),
        ("epyc-7702", placement("cache", "compact"), 2, ["0-3,64-67", "4-7,68-71"]),
        ("graviton3", placement("all", "spread"), 3, ["0-4", "5-9", "10-14"]),
        ("graviton3", placement("all", "none"), 2, ["0-15", "0-15"]),
    ],
)
def test_instances_get_masks_of_their_own(name, asked, n, parts, *, host_root, spread):
    """C22: instances are laid along sockets and caches and share no CPU."""
    expected = tuple(tuple(cpus) for cpus in spread(parts))

    assert expected == resolve_instances(asked, detect(host_root(name)), n)


def test_more_instances_than_cpus_are_refused(host_root):
    """Each instance needs a CPU."""
    with pytest.raises(UsageError, match="17 instances of 1 CPUs"):
        resolve_instances(placement("all", "spread"), detect(host_root("graviton3")), 17)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("server-2s64c", (("all", "package"), ("none", "spread", "compact"), (None,), (64, 128))),
        ("server-2s64c-cpuset16", (("all",), ("none", "spread", "compact"), (None,), (8, 16))),
        ("xeon-snc4", (("all", "package", "node"), ("none", "spread", "compact"), (None,), (112, 224))),
        ("epyc-7702", (("all", "cache"), ("none", "spread", "compact"), (None,), (64, 128))),
        ("graviton3", (("all",), ("none", "spread"), (None,), (16,))),
        ("hybrid-pmu", (("all",), ("none", "spread", "compact"), (None, "performance", "efficiency"), (14, 20))),
        ("docker-v2-quota", (("all",), ("none", "spread", "compact"), (None,), (1, 8, 16))),
        ("vm-1cpu", (("all",), ("none",), (None,), (1,))),
    ],
)
def test_dimensions_that_do_nothing_are_left_out(name, expected, host_root):
    """C10: one node, one package, all where they differ; nothing twice."""
    assert expected == tuple(choices(detect(host_root(name))))


def test_a_system_without_masks_has_no_placements(host_root):
    """C13: nothing to choose where nothing can be set."""
    host = detect(host_root("server-2s64c")).model_copy(update={"is_pinning_available": False})

    assert choices(host)[:3] == (("all",), ("none",), (None,))


def test_groups_never_lose_a_cpu(host_root):
    """CPUs of unknown group form one of their own."""
    host = detect(host_root("memory-only-node"))

    assert groups("node", host) == ((0, 1, 2, 3, 4, 5, 6, 7), (8, 9, 10, 11, 12, 13, 14, 15))
