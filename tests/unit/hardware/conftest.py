"""Unpacks saved hosts (format: tests/data/hosts/README.md) and plants small trees of files."""

import re
from itertools import chain
from pathlib import Path

import pytest

HOSTS = Path(__file__).resolve().parents[2] / "data" / "hosts"
_IDS = re.compile(r"\[([0-9][0-9,-]*)\]")


def ids(text):
    """Return the ids of ``0-3,8`` in the order written, repeats kept."""
    found = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def side_by_side(text):
    """Return one text for every id of the bracket groups, which run side by side."""
    groups = [ids(group) for group in _IDS.findall(text)]
    if not groups:
        return [text]
    pattern = _IDS.sub("[]", text).split("[]")
    return ["".join(chain(*zip(pattern, [*map(str, row), ""], strict=True))) for row in zip(*groups, strict=True)]


def files_of(name):
    """Return the files of a saved host by path."""
    files = {}
    for line in (HOSTS / f"{name}.tree").read_text(encoding="utf-8").splitlines():
        word, _, rest = line.partition(" ")
        if not line or line.startswith("#"):
            continue
        if word == "include":
            files |= files_of(rest)
        elif word == "remove":
            files = {path: text for path, text in files.items() if path != rest and not path.startswith(rest + "/")}
        else:
            for row in side_by_side(line.replace("\\n", "\n").replace("\\t", "\t")):
                path, operator, text = re.match(r"(\S+) (\+?=) ?(.*)", row, re.DOTALL).groups()
                files[path] = files.get(path, "") + text if operator == "+=" else text
    return files


def write(root, files):
    """Write `files` below `root`, each with a line break at its end as the kernel does."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")
    return root


@pytest.fixture(scope="session")
def host_root(tmp_path_factory):
    """Return a function from a saved host's name to a directory with its files, unpacked once."""
    unpacked = {}

    def root_of(name):
        if name not in unpacked:
            unpacked[name] = write(tmp_path_factory.mktemp(name), files_of(name))
        return unpacked[name]

    return root_of


@pytest.fixture
def plant(tmp_path):
    """Return a function that writes files (a mapping, with bracket groups in paths and texts) and returns the root."""

    def planted(files):
        rows = (row.partition(" ") for path, text in files.items() for row in side_by_side(f"{path} {text}"))
        return write(tmp_path, {path: text for path, _, text in rows})

    return planted


@pytest.fixture
def sixteen(plant):
    """Return a function that plants a 16-CPU machine without limits plus the given files."""

    def planted(files):
        plain = {
            "sys/devices/system/cpu/online": "0-15",
            "sys/devices/system/cpu/cpu[0-15]/topology/physical_package_id": "0",
            "sys/devices/system/cpu/cpu[0-15]/topology/core_id": "[0-15]",
            "sys/devices/system/cpu/cpu[0-15]/cpufreq/cpuinfo_max_freq": "3000000",
            "proc/cpuinfo": "flags: lm avx2",
            "proc/meminfo": "MemTotal: 64000000 kB\nMemAvailable: 60000000 kB",
            "proc/self/status": "Cpus_allowed_list:\t0-15",
            "proc/self/cgroup": "0::/",
            "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids",
        }
        return plant(plain | files)

    return planted


@pytest.fixture(scope="session")
def spread():
    """Return the function that turns the id patterns of expected facts into lists of ids."""

    def expanded(value):
        texts = value if isinstance(value, list) else side_by_side(value)
        return [ids(text) for text in texts]

    return expanded
