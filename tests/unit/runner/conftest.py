"""A host with two CPUs on one memory node."""

import pytest

from tuner.records.hardware import Host, NumaNode


@pytest.fixture
def two_cpus():
    """Return a plain host with two CPUs."""
    return Host(
        online_cpus=(0, 1),
        allowed_cpus=(0, 1),
        physical_cores=((0,), (1,)),
        quota_cpus=None,
        cpu_budget=2,
        bound_by="online",
        packages=(),
        numa_nodes=(NumaNode(id=0, cpus=(0, 1), memory_bytes=1 << 30),),
        cpu_nodes=(0,),
        membind_nodes=(0,),
        core_classes={"uniform": (0, 1)},
        caches=(),
        isa=(),
        memory_budget_bytes=1 << 30,
        memory_bound_by="host",
        smt=False,
        virtualized=False,
        cgroup_version=2,
    )
