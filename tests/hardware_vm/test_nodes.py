"""Masks and memory policies on a machine with three memory nodes, one without CPUs, as its kernel counts the pages."""

import pytest

pytestmark = pytest.mark.slow
N_PAGES = (16 << 20) // 4096
N_HUGE = (2 << 20) // 4096


def test_nodes_are_seen(findings):
    """Two nodes with two CPUs each and one with memory only; sockets as the machine has them."""
    plain = findings["plain"]
    assert plain["nodes"] == {"0": [0, 1], "1": [2, 3], "2": []}
    assert (plain["cpu_nodes"], plain["membind_nodes"]) == ([0, 1], [0, 1, 2])
    assert (plain["packages"], plain["cpu_budget"]) == ([[0, 1], [2, 3]], 4)


def test_memory_policy_is_permitted(findings):
    """The probe says what the kernel then does."""
    assert findings["plain"]["is_memory_policy_permitted"] is True


def test_one_instance_a_node(findings):
    """Two instances of two CPUs get a node each."""
    assert findings["masks"] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("node", [0, 1])
def test_mask_brings_local_memory(findings, node):
    """Without a policy, memory comes from the node of the mask."""
    found = findings[f"local {node}"]
    assert (found["cpus"], found["policy"][0]) == ([2 * node, 2 * node + 1], "default")
    assert found["pages"] == {str(node): N_PAGES}


@pytest.mark.parametrize("node", [0, 1])
@pytest.mark.parametrize("target", [0, 1, 2])
def test_binding(findings, node, target):
    """Bound memory lies on its node alone, from whatever CPUs, also where there are none."""
    found = findings[f"bind {node} {target}"]
    assert found["policy"] == ["bind", [target]]
    assert found["pages"] == {str(target): N_PAGES}


def test_interleaving(findings):
    """Interleaved memory lies on both nodes, half on each but for one huge page."""
    pages = findings["interleave"]["pages"]
    assert (set(pages), sum(pages.values())) == ({"0", "1"}, N_PAGES)
    assert abs(pages["0"] - pages["1"]) <= N_HUGE


def test_node_that_is_not_there(findings):
    """A node without memory is refused by name."""
    assert findings["no such node"]["error"].startswith("memory policy bind:9: ")


def test_quota_of_version_2(findings):
    """A quota of a version 2 group is a budget of its whole part."""
    quota = findings["quota"]
    assert (quota["quota_cpus"], quota["cpu_budget"], quota["bound_by"]) == (1.5, 1, "quota")
    assert quota["cgroup_version"] == 2


def test_cpuset(findings):
    """A cpuset narrows CPUs, nodes to bind to, and the budget."""
    found = findings["cpuset"]
    assert (found["allowed_cpus"], found["cpu_budget"], found["bound_by"]) == ([2, 3], 2, "affinity")
    assert (found["cpu_nodes"], found["membind_nodes"]) == ([1], [1])


def test_binding_outside_the_cpuset(findings):
    """Memory that the cpuset does not grant cannot be bound to."""
    assert findings["bind outside the cpuset"]["error"].startswith("memory policy bind:0: ")
