"""Facts that rules may use."""

from tuner.records.model import ModelFacts
from tuner.records.workload import Workload
from tuner.space.facts import FACTS, facts_of_host, facts_of_model, facts_of_workload


def test_host(host):
    """Lists of a host become counts; of several packages the largest allowed part counts."""
    facts = facts_of_host(host)
    assert facts.keys() == set(FACTS["host"])
    assert (facts["allowed_cpus"], facts["physical_cores"], facts["cpu_budget"]) == (8, 4, 8)
    assert (facts["packages"], facts["package_cpus"], facts["package_cores"]) == (2, 4, 2)
    assert (facts["numa_nodes"], facts["node_cpus"], facts["node_cores"]) == (2, 4, 2)
    assert (facts["core_classes"], facts["performance_cpus"]) == (1, 0)
    assert facts["isa"] == ("avx2",)


def test_mask_cuts_packages(host):
    """Only allowed CPUs count, and a package without one is none."""
    cut = host.model_copy(update={"allowed_cpus": (0, 1, 2), "physical_cores": ((0, 1), (2,))})
    facts = facts_of_host(cut)
    assert (facts["packages"], facts["package_cpus"], facts["package_cores"]) == (1, 3, 2)


def test_cpus_without_a_group_form_one(host):
    """Where the host tells no caches, all CPUs share one."""
    facts = facts_of_host(host)
    assert (facts["cache_groups"], facts["cache_cpus"], facts["cache_cores"]) == (1, 8, 4)


def test_model():
    """What the files of a model do not say is unknown."""
    facts = facts_of_model(ModelFacts(source="m", kind="onnx", path="/m", sha256="0", task="forward", weight_bytes=10))
    assert facts.keys() == set(FACTS["model"])
    assert (facts["kind"], facts["weight_bytes"], facts["n_layers"]) == ("onnx", 10, None)


def test_workload():
    """Lengths become the shortest, the longest and the number of different ones."""
    facts = facts_of_workload(Workload(task="forward", lengths=(8, 128, 8)))
    assert facts.keys() == set(FACTS["workload"])
    assert (facts["min_length"], facts["max_length"], facts["n_lengths"]) == (8, 128, 2)
