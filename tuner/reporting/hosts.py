"""Renders a host for people: the three CPU numbers, memory, cores, nodes and instruction sets; it reads nothing."""

from rich.table import Table
from rich.text import Text

from tuner.hardware.lists import format_cpu_list
from tuner.records.hardware import Cache, Host

_GIB = 1 << 30
_SHOWN_ISA = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",
              "amx_int8", "asimd", "asimddp", "bf16", "i8mm", "sve", "sve2", "sme", "v")  # fmt: skip


def render(host: Host) -> Table:
    """Return the facts as a two-column table; figures are rounded for reading."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows(host):
        table.add_row(name, Text(value))
    return table


def rows(host: Host) -> list[tuple[str, str]]:
    """Return the lines of the table."""
    quota = "none" if host.quota_cpus is None else f"{host.quota_cpus:g} CPUs"
    nodes = [f"{node.id}: {_listed(node.cpus)}, {_gib(node.memory_bytes)}" for node in host.numa_nodes]
    memory = f"{_gib(host.memory_budget_bytes)} free to use, bound by {_or_unknown(host.memory_bound_by)}"
    system = f"Linux {_or_unknown(host.kernel)}, THP {_or_unknown(host.thp)}, governor {_or_unknown(host.governor)}"
    model = f"{_or_unknown(host.cpu_model)} ({_or_unknown(host.architecture)}"
    return [
        ("CPU budget", f"{host.cpu_budget}, bound by {host.bound_by}"),
        ("  online", _listed(host.online_cpus)),
        ("  allowed", _listed(host.allowed_cpus)),
        ("  quota", f"{quota} (cgroup {_or_unknown(host.cgroup_version)}, {_or_unknown(host.cgroup_layout)})"),
        ("CPU", f"{model}{', guest' if host.virtualized else ''})"),
        ("cores", f"{host.n_physical_cores} physical, SMT {_on_off(host.smt)}, {len(host.packages)} package(s)"),
        *[(f"  {name}", _listed(cpus)) for name, cpus in host.core_classes.items() if len(host.core_classes) > 1],
        *[(f"  L{level}", text) for level, text in _cache_lines(host.caches)],
        ("NUMA nodes", ", ".join(nodes)),
        ("memory", f"{memory}, of {_gib(host.memory_total_bytes)}"),
        ("ISA", " ".join(flag for flag in _SHOWN_ISA if flag in host.isa) or "unknown"),
        ("system", f"{system}, turbo {_on_off(host.turbo)}, clock {_or_unknown(host.clocksource)}"),
        ("fingerprint", host.fingerprint[:16]),
    ]


def _cache_lines(caches: tuple[Cache, ...]) -> list[tuple[int, str]]:
    """Return a line for every level: how many caches of which size."""
    lines = []
    for level in sorted({cache.level for cache in caches}):
        sizes: dict[int | None, int] = {}
        for cache in caches:
            if cache.level == level:
                sizes[cache.size_bytes] = sizes.get(cache.size_bytes, 0) + 1
        lines.append((level, ", ".join(f"{n} x {_size(size)}" for size, n in sizes.items())))
    return lines


def _listed(cpus: tuple[int, ...]) -> str:
    """Return how many CPUs and which."""
    return f"{len(cpus)} ({format_cpu_list(cpus)})" if cpus else "no CPUs"


def _size(size_bytes: int | None) -> str:
    """Return a cache's size."""
    if size_bytes is None:
        return "unknown size"
    return f"{size_bytes / (1 << 20):g} MiB" if size_bytes >= 1 << 20 else f"{size_bytes / (1 << 10):g} KiB"


def _gib(size_bytes: int | None) -> str:
    """Return memory in GiB."""
    return "unknown memory" if size_bytes is None else f"{size_bytes / _GIB:.1f} GiB"


def _or_unknown(value: object) -> str:
    """Return a fact or say that it is unknown."""
    return "unknown" if value is None else str(value)


def _on_off(value: bool | None) -> str:
    """Return a switch's state."""
    return "unknown" if value is None else "on" if value else "off"
