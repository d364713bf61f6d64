"""Hosts, and spaces written as text."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tuner.plugins import space_file
from tuner.records.hardware import Host, NumaNode, Package
from tuner.space.facts import facts_of_host
from tuner.space.loading import load_space
from tuner.space.resolved import ResolvedSpace
from tuner.space.space import SearchSpace

SHIPPED = tuple(
    sorted(
        path.name for path in Path(str(space_file("process.toml"))).parent.glob("*.toml") if path.name != "fake.toml"
    )
)
STEPS = tuple(name for name in SHIPPED if "\nstep = " in space_file(name).read_text())
MODEL = {"kind": "huggingface", "n_layers": 6}
WORKLOAD = {"batch_size": 1, "concurrency": 1, "n_lengths": 1, "max_length": 128}


def make_host(
    n_cores: int,
    *,
    isa: tuple[str, ...] = (),
    threads_per_core: int = 1,
    n_packages: int = 1,
    quota_cpus: float | None = None,
    classes: dict[str, tuple[int, ...]] | None = None,
    is_pinning_available: bool = True,
) -> Host:
    """Return a host; sibling threads have neighbouring ids, packages are memory nodes too."""
    n_cpus = n_cores * threads_per_core
    cpus = tuple(range(n_cpus))
    cores = tuple(tuple(cpus[i : i + threads_per_core]) for i in range(0, n_cpus, threads_per_core))
    share = n_cpus // n_packages
    parts = [cpus[i * share : (i + 1) * share] for i in range(n_packages)]
    return Host(
        online_cpus=cpus,
        allowed_cpus=cpus,
        physical_cores=cores,
        quota_cpus=quota_cpus,
        cpu_budget=max(1, min(n_cpus, int(quota_cpus or n_cpus))),
        bound_by="online" if quota_cpus is None else "quota",
        packages=tuple(Package(id=i, cpus=part, dies=(part,)) for i, part in enumerate(parts)),
        numa_nodes=tuple(NumaNode(id=i, cpus=part, memory_bytes=1 << 30) for i, part in enumerate(parts)),
        cpu_nodes=tuple(range(n_packages)),
        membind_nodes=tuple(range(n_packages)),
        core_classes=classes or {"uniform": cpus},
        caches=(),
        isa=isa,
        memory_budget_bytes=4 << 30,
        memory_bound_by="host",
        smt=threads_per_core > 1,
        virtualized=False,
        cgroup_version=2,
        is_pinning_available=is_pinning_available,
        is_memory_policy_permitted=True,
    )


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., SearchSpace]:
    """Return a function that loads spaces from texts, one file each."""

    def loaded(*texts: str) -> SearchSpace:
        files = []
        for number, text in enumerate(texts, start=1):
            file = tmp_path / f"{number}.toml"
            file.write_text(f'schema = "tuner.space/1"\n{text}', encoding="utf-8")
            files.append(file)
        return load_space(files)

    return loaded


@pytest.fixture
def resolve(load: Callable[..., SearchSpace]) -> Callable[..., ResolvedSpace]:
    """Return a function that resolves texts on a host with two CPUs."""

    def resolved(*texts: str, host: dict[str, object] | None = None, **options: object) -> ResolvedSpace:
        return load(*texts).resolve({"cpu_budget": 2, **(host or {})}, {}, {}, **options)  # type: ignore[arg-type]

    return resolved


_resolved: dict[str, ResolvedSpace] = {}
"""Spaces that tests share: none of them changes one."""


@cache
def shipped() -> SearchSpace:
    """Return the shipped spaces, read once."""
    return load_space([space_file(name) for name in SHIPPED])


@pytest.fixture
def on_host() -> Callable[..., ResolvedSpace]:
    """Return a function that resolves the shipped spaces on a host made by `make_host`."""

    def resolved(*arguments: object, options: dict[str, object] | None = None, **shape: object) -> ResolvedSpace:
        key = repr((arguments, options, sorted(shape.items())))
        if key not in _resolved:
            facts = facts_of_host(make_host(*arguments, **shape))  # type: ignore[arg-type]
            _resolved[key] = shipped().resolve(facts, MODEL, WORKLOAD, **(options or {}))  # type: ignore[arg-type]
        return _resolved[key]

    return resolved


@pytest.fixture
def load_shipped() -> Callable[..., ResolvedSpace]:
    """Return a function that resolves shipped files on a host with two CPUs."""

    def resolved(*names: str) -> ResolvedSpace:
        own = [name for name in names if name not in STEPS]
        space = load_space([space_file(name) for name in (*own, *STEPS)])
        return space.resolve(facts_of_host(make_host(2)), MODEL, WORKLOAD)

    return resolved


@pytest.fixture
def host() -> Host:
    """Return a host with two sockets of two cores with two threads each."""
    return make_host(4, isa=("avx2",), threads_per_core=2, n_packages=2)
