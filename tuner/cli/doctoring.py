"""`autotune doctor`: audit of host, libraries, compilers and permissions, with remedies."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def doctor(
    *,
    cache_dir: Annotated[str | None, Parameter(help="default: $XDG_CACHE_HOME/autotune")] = None,
    root: Annotated[Path, Parameter(help="read /sys and /proc below this directory")] = Path("/"),
    json: Annotated[bool, Parameter(negative="", help="print one JSON document")] = False,
) -> int:
    """Say how quiet this host is, what gain it can resolve, what is missing and what would help. 3: cannot tune."""
    from tuner.reporting.diagnoses import render_diagnosis
    from tuner.tuning.doctoring import PAIR_S, diagnose

    found = diagnose(cache_dir, root)
    if json:
        sys.stdout.write(found.to_json(indent=1) + "\n")
    else:
        rows = [(finding.name, finding.state, finding.detail, finding.remedy) for finding in found.findings]
        render_diagnosis(rows, host_class=found.host_class, resolvable=found.resolvable, pair_s=PAIR_S)
    return 0 if found.can_tune else 3
