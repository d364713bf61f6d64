"""A config on a smaller host: what is given up, what checking says, what a launcher gets."""

import json
import re

import pytest

from tuner.errors import ProfileMismatch
from tuner.loading.adapting import adapt
from tuner.loading.checking import process_differences, served
from tuner.loading.launchers import render_launcher, unset_names
from tuner.loading.launching import LaunchSettings, launch_settings
from tuner.records.config import Config, Placement, ProcessSettings
from tuner.records.hardware import Host, NumaNode

SESSION = {"intra_op_threads": 8, "inter_op_threads": 1, "num_streams": 4, "allow_spinning": True, "batch": 64}


@pytest.fixture
def make_host():
    """Return a function that makes a host with so many CPUs, one thread a core, two CPUs a memory node."""

    def make(n_cpus, **changes):
        cpus = tuple(range(n_cpus))
        nodes = tuple(
            NumaNode(id=number, cpus=cpus[start : start + 2], memory_bytes=1 << 30)
            for number, start in enumerate(range(0, n_cpus, 2))
        )
        host = Host(
            online_cpus=cpus,
            allowed_cpus=cpus,
            physical_cores=tuple((cpu,) for cpu in cpus),
            quota_cpus=None,
            cpu_budget=n_cpus,
            bound_by="affinity",
            packages=(),
            numa_nodes=nodes,
            cpu_nodes=tuple(node.id for node in nodes),
            membind_nodes=tuple(node.id for node in nodes),
            core_classes={"uniform": cpus},
            caches=(),
            isa=(),
            memory_budget_bytes=1 << 30,
            memory_bound_by="host",
            smt=False,
            virtualized=False,
            cgroup_version=2,
            is_memory_policy_permitted=True,
        )
        return host.model_copy(update=changes)

    return make


def config(session=None, **process):
    """Return a config with these settings."""
    return Config(backend="onnxruntime", session=session or {}, process=ProcessSettings(**process))


@pytest.fixture
def with_process(profile_document, profile):
    """Return a function that makes a profile whose best config has these settings."""

    def make(session=None, **process):
        best = profile_document()["best"]
        best["config"] = config(session, **process).model_dump(mode="json")
        return profile(best=best)

    return make


def test_enough_cpus_change_nothing(make_host):
    """A config that fits stays as it is."""
    asked = config(SESSION, placement=Placement(policy="spread", n_cpus=8), env={"OMP_NUM_THREADS": "8"})
    assert adapt(asked, make_host(8)) == (asked, {})


def test_threads_are_cut_to_what_is_granted(make_host):
    """Thread and stream counts shrink, other numbers and switches stay."""
    found = adapt(config(SESSION), make_host(2))
    assert found.config.session == {**SESSION, "intra_op_threads": 2, "num_streams": 2}
    assert set(found.given_up) == {"session.intra_op_threads", "session.num_streams"}


def test_reason_names_both_counts(make_host):
    """What is said is what was asked, what is granted and what limits it."""
    (reason,) = adapt(config({"threads": 8}), make_host(1)).given_up.values()
    assert reason == "8 asked, 1 granted (bound by affinity)"


def test_counts_in_the_environment(make_host):
    """Variables that count threads shrink too."""
    found = adapt(config(env={"OMP_NUM_THREADS": "8", "OMP_WAIT_POLICY": "passive"}), make_host(2))
    assert found.config.process.env == {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"n_cpus": 8}, {"n_cpus": 2}),
        ({"scope": "node", "n_cpus": 8}, {"scope": "node", "n_cpus": 2}),
        ({"core_class": "performance", "n_cpus": 2}, {"n_cpus": 2}),
        ({"scope": "package", "core_class": "performance", "n_cpus": 4}, {"n_cpus": 2}),
    ],
)
def test_mask(make_host, asked, expected):
    """The mask gets smaller, then wider in scope, then of any kind of core."""
    found = adapt(config(placement=Placement(policy="spread", **asked)), make_host(2))
    assert found.config.process.placement == Placement(policy="spread", **expected)
    assert set(found.given_up) == {"process.placement"}


def test_quota_limits_a_mask(make_host):
    """A mask above the quota is cut, even where so many CPUs are allowed."""
    host = make_host(8, cpu_budget=2, quota_cpus=2.5, bound_by="quota")
    assert adapt(config(placement=Placement(policy="spread", n_cpus=8)), host).config.process.placement.n_cpus == 2


@pytest.mark.parametrize(
    ("field", "name", "way_out"),
    [
        ("allocator", "jemalloc", "apt-get install libjemalloc2"),
        ("openmp_runtime", "iomp", "install it, or tune again"),
    ],
)
def test_missing_library(make_host, field, name, way_out):
    """A library that is not installed is left out, and has to be checked again; what would bring it is said."""
    asked = config(**{field: name})
    assert getattr(adapt(asked, make_host(2)).config.process, field) is None
    (difference,) = process_differences(asked, make_host(2))
    assert (difference.field, difference.consequence) == (f"process.{field}", "recheck")
    assert way_out in difference.detail


def test_memory_policy_that_is_not_permitted(make_host):
    """Without permission memory stays unbound, which is said."""
    asked = config(memory_policy="bind")
    (difference,) = process_differences(asked, make_host(4, is_memory_policy_permitted=False))
    assert (difference.field, difference.consequence) == ("process.memory_policy", "recheck")


def test_kind_of_core_that_is_not_there(make_host):
    """A mask that fits by count only is refused by name, and can be adapted."""
    asked = config(placement=Placement(policy="spread", n_cpus=2, core_class="performance"))
    differences = process_differences(asked, make_host(4))
    assert [(one.field, one.consequence) for one in differences] == [("process.placement", "refuse")]
    assert served(differences) == "adapted"


def test_exec_refuses_what_does_not_fit(with_process, make_host):
    """Fewer CPUs than asked for: refused with the way out."""
    asked = with_process(placement=Placement(policy="spread", n_cpus=8))
    with pytest.raises(ProfileMismatch, match=r"8 CPUs asked for.*--adapt"):
        launch_settings(asked, make_host(2), {})


def test_exec_refuses_more_threads_than_the_budget(with_process, make_host):
    """Without a mask, threads above the budget are refused too."""
    with pytest.raises(ProfileMismatch, match=r"session\.threads: 8 asked, 2 granted"):
        launch_settings(with_process({"threads": 8}), make_host(2), {})


def test_exec_adapts_on_demand(with_process, make_host):
    """With leave to adapt, the mask is what is granted, and it is said."""
    asked = with_process(placement=Placement(policy="spread", n_cpus=8))
    settings = launch_settings(asked, make_host(2), {}, allow_adapting=True)
    assert (settings.cpus, set(settings.given_up)) == ((0, 1), {"process.placement"})


def test_memory_nodes_are_those_of_the_mask(with_process, make_host):
    """Binding goes to the nodes of the CPUs, interleaving over all."""
    place = Placement(policy="spread", scope="node", n_cpus=2)
    assert (
        launch_settings(with_process(placement=place, memory_policy="bind"), make_host(4), {}).memory_policy == "bind:0"
    )
    interleaved = with_process(placement=Placement(policy="spread"), memory_policy="interleave")
    assert launch_settings(interleaved, make_host(4), {}).memory_policy == "interleave:0,1"


@pytest.fixture
def settings():
    """Return settings of every kind."""
    asked = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "LD_PRELOAD": "/usr/lib/libjemalloc.so.2"}
    return LaunchSettings(cpus=(2, 3), environment={}, asked=asked, memory_policy="bind:1")


def test_shell(settings):
    """Shell lines unset what would interfere, export what is asked and set the mask of the shell."""
    lines = render_launcher("shell", settings).splitlines()
    assert "export GLIBC_TUNABLES=glibc.malloc.hugetlb=1" in lines
    assert "export LD_PRELOAD=/usr/lib/libjemalloc.so.2" in lines
    assert "taskset -cp 2,3 $$ >/dev/null" in lines
    assert re.match(r"unset .*\bGOMP_CPU_AFFINITY\b.*\bOMP_NUM_THREADS\b", lines[0])


def test_docker(settings):
    """Docker gets the same as options."""
    expected = (
        "--cpuset-cpus=2,3 \\\n--cpuset-mems=1 \\\n--cap-add=SYS_NICE \\\n"
        "--env=GLIBC_TUNABLES=glibc.malloc.hugetlb=1 \\\n--env=LD_PRELOAD=/usr/lib/libjemalloc.so.2\n"
    )
    assert render_launcher("docker", settings) == expected


def test_systemd(settings):
    """A drop-in sets mask, memory nodes and variables."""
    lines = render_launcher("systemd", settings).splitlines()
    expected = ["[Service]", "CPUAffinity=2 3", "NUMAPolicy=bind", "NUMAMask=1"]
    assert lines[:4] == expected
    assert 'Environment="GLIBC_TUNABLES=glibc.malloc.hugetlb=1"' in lines


def test_kubernetes(settings):
    """A container gets variables, and as many whole CPUs as the mask has."""
    text = render_launcher("k8s", settings)
    assert '- name: "GLIBC_TUNABLES"\n  value: "glibc.malloc.hugetlb=1"\n' in text
    assert text.count('{cpu: "2"}') == 2


def test_json(settings):
    """Programs get one document."""
    found = json.loads(render_launcher("json", settings))
    assert (found["cpus"], found["env"], found["memory_policy"]) == ([2, 3], settings.asked, "bind")
    assert found["unset"] == unset_names(settings)


@pytest.mark.parametrize("launcher", ["shell", "docker", "systemd", "k8s", "json"])
def test_nothing_asked(launcher):
    """A config without process settings is written without a mask."""
    text = render_launcher(launcher, LaunchSettings(cpus=None, environment={}))
    assert not re.search(r"taskset|cpuset|CPUAffinity|limits", text)
    assert text.endswith("\n")
