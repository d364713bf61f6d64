"""`autotune host`: what it prints."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tuner.cli.host import host
from tuner.errors import UsageError
from tuner.hardware import detect
from tuner.reporting.hosts import rows


@pytest.fixture
def root(tmp_path):
    """Return a root with four CPUs, a mask of three and a quota of half a CPU."""
    files = {
        "sys/devices/system/cpu/online": "0-3",
        "proc/self/status": "Cpus_allowed_list:\t1-3",
        "proc/self/cgroup": "0::/",
        "sys/fs/cgroup/cpu.max": "50000 100000",
        "proc/meminfo": "MemTotal: 4194304 kB\nMemAvailable: 3145728 kB",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_json_is_exactly_one_document(root, capsys):
    """Standard output holds one JSON document, standard error nothing."""
    host(json=True, root=root)
    printed = capsys.readouterr()

    assert (json.loads(detect(root).to_json()), "") == (json.loads(printed.out), printed.err)


def test_the_contracts_keys_are_all_there(root, capsys):
    """Names that users script against."""
    host(json=True, root=root)
    promised = (
        "online_cpus allowed_cpus physical_cores quota_cpus cpu_budget bound_by packages numa_nodes cpu_nodes"
        " membind_nodes core_classes caches isa memory_budget_bytes memory_bound_by smt virtualized cgroup_version"
        " notices fingerprint"
    )

    assert set() == set(promised.split()) - json.loads(capsys.readouterr().out).keys()


def test_the_three_cpu_numbers_and_the_bound_are_shown(root):
    """C01: online, allowed, quota, and which of them bound."""
    shown = [value for _, value in rows(detect(root))][:4]

    assert shown == ["1, bound by quota", "4 (0-3)", "3 (1-3)", "0.5 CPUs (cgroup 2, unified)"]


def test_notices_come_with_their_remedies(root, capsys):
    """C03: less than one CPU is said, with what to do."""
    host(root=root)
    printed = capsys.readouterr().out

    assert "quota_below_one" in printed
    assert "raise the CPU limit" in printed


def test_given_affinity_is_used(root, capsys):
    """--affinity wins over the mask."""
    host(json=True, root=root, affinity="0")

    assert json.loads(capsys.readouterr().out)["allowed_cpus"] == [0]


def test_a_missing_root_is_the_users_mistake(tmp_path):
    """The command ends with a usage error."""
    with pytest.raises(UsageError, match="no such directory"):
        host(root=tmp_path / "absent")


def test_nothing_heavy_is_imported():
    """The command starts fast because it loads no engine and no array library."""
    code = (
        "import sys, tuner.cli.host;"
        "heavy = {'torch', 'numpy', 'onnxruntime', 'openvino', 'transformers', 'psutil', 'optuna'};"
        "print(sorted(heavy & sys.modules.keys()))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"
