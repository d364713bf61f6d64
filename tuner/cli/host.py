"""`autotune host`: which CPUs, how much memory and what else this process really has; it only shows."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def host(
    *,
    json: Annotated[bool, Parameter(negative="", help="print one JSON document")] = False,
    root: Annotated[Path, Parameter(help="read proc and sys below this directory")] = Path("/"),
    affinity: Annotated[str | None, Parameter(help="CPUs that stand in for the affinity mask, e.g. 0-7")] = None,
) -> int:
    """Show the CPUs, memory, quota, NUMA nodes and instruction sets that this process really has."""
    from tuner.hardware.detection import detect

    found = detect(root, affinity)
    if json:
        sys.stdout.write(found.to_json(indent=2) + "\n")
        return 0
    from rich.console import Console
    from rich.text import Text

    from tuner.reporting.hosts import render

    console = Console()
    console.print(render(found))
    for notice in found.notices:
        console.print(Text.assemble((f"{notice.code}: ", "bold yellow"), notice.detail), soft_wrap=True)
        if notice.remedy:
            console.print(Text(f"  → {notice.remedy}"), soft_wrap=True)
    return 0
