"""Detects every saved host and compares the facts with those that a person derived."""

import json
from pathlib import Path

import pytest

from tuner.hardware import detect

HOSTS = Path(__file__).resolve().parents[2] / "data" / "hosts"
NAMES = sorted(path.stem for path in HOSTS.glob("*.json"))


def facts(host):
    """Return a host's JSON with the collections in the shape of the expected files."""
    found = json.loads(host.to_json())
    found["packages"] = {str(package["id"]): package["cpus"] for package in found["packages"]}
    found["numa_nodes"] = {str(node["id"]): [node["cpus"], node["memory_bytes"]] for node in found["numa_nodes"]}
    found["last_level_caches"] = [[cache.size_bytes, list(cache.cpus)] for cache in host.last_level_caches]
    found["compute_isa"] = list(host.compute_isa)
    found["notices"] = sorted(notice["code"] for notice in found["notices"])
    return found


def expected_facts(name, spread):
    """Return the expected facts with id patterns turned into ids."""
    expected = json.loads((HOSTS / f"{name}.json").read_text(encoding="utf-8"))
    del expected["note"]
    for key in {"online_cpus", "allowed_cpus"} & expected.keys():
        (expected[key],) = spread([expected[key]])
    for key in {"packages", "core_classes"} & expected.keys():
        expected[key] = {label: spread([text])[0] for label, text in expected[key].items()}
    if "physical_cores" in expected:
        expected["physical_cores"] = spread(expected["physical_cores"])
    if "numa_nodes" in expected:
        nodes = expected["numa_nodes"].items()
        expected["numa_nodes"] = {label: [spread([text])[0], size] for label, (text, size) in nodes}
    if "last_level_caches" in expected:
        expected["last_level_caches"] = [[size, spread([text])[0]] for size, text in expected["last_level_caches"]]
    return expected


@pytest.mark.parametrize("name", NAMES)
def test_facts_are_those_derived_by_hand(name, host_root, spread):
    """Every fact that the expected file states is found exactly."""
    expected = expected_facts(name, spread)

    actual = {key: value for key, value in facts(detect(host_root(name))).items() if key in expected}

    assert expected == actual


@pytest.mark.parametrize("name", NAMES)
def test_budget_is_the_least_of_the_three_numbers(name, host_root):
    """The budget never exceeds what is online, allowed or granted by the quota, and is at least one."""
    host = detect(host_root(name))

    numbers = [len(host.online_cpus), len(host.allowed_cpus), max(1, int(host.quota_cpus or len(host.online_cpus)))]

    assert min(numbers) == host.cpu_budget


@pytest.mark.parametrize("name", NAMES)
def test_a_host_reads_back_from_its_json(name, host_root):
    """The record survives JSON, so profiles can hold it."""
    host = detect(host_root(name))

    assert host == type(host).from_json(host.to_json())


@pytest.mark.parametrize("name", NAMES)
def test_every_notice_says_what_to_do(name, host_root):
    """No notice is without a remedy."""
    assert [notice.code for notice in detect(host_root(name)).notices if not notice.remedy] == []
