"""`autotune verify`: does a profile's claim stand in a fresh playoff here; it changes nothing."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

CODES = {"confirmed": 0, "contradicted": 6, "not_resolved": 7}


def verify(
    profile: Annotated[Path, Parameter(help="the profile")],
    /,
    *,
    budget: Annotated[str, Parameter(help="wall time, e.g. 5m")] = "10m",
    model: Annotated[str | None, Parameter(help="where the model is now, if it moved")] = None,
    cache_dir: Annotated[str | None, Parameter(help="default: $XDG_CACHE_HOME/autotune")] = None,
    progress: Annotated[Literal["auto", "plain", "json", "none"], Parameter()] = "auto",
    json: Annotated[bool, Parameter(negative="", help="print one JSON document")] = False,
    trust_code: Annotated[bool, Parameter(negative="", help="run the code of a py: model or a metric")] = False,
) -> int:
    """Play a profile's best against its baseline again, in fresh processes.

    Exit code 0: confirmed, 6: contradicted, 7: not resolved (the budget that would resolve it is named).
    """
    from tuner.loading.files import read_profile
    from tuner.reporting.formats import seconds
    from tuner.reporting.progress import reporter
    from tuner.tuning.request import parse_duration
    from tuner.tuning.verifying import verify_profile

    with reporter(progress) as on_event:
        result = verify_profile(
            read_profile(profile),
            profile,
            budget_s=parse_duration(budget),
            model=model,
            cache_dir=cache_dir,
            trust_code=trust_code,
            on_event=on_event,
        )
    if json:
        sys.stdout.write(result.to_json(indent=1) + "\n")
        return CODES[result.outcome]
    line = result.outcome.replace("_", " ")
    if result.speedup is not None:
        low, high = result.speedup.ci95
        line += f": {result.speedup.ratio:.2f}× [{low:.2f}, {high:.2f}] on {result.speedup.pairs} pairs"
    if result.claimed is not None:
        line += f", the profile claims {result.claimed:.2f}×"
    if result.needed_budget_s is not None:
        line += f"; --budget {int(result.needed_budget_s) + 1}s ({seconds(result.needed_budget_s)}) would resolve it"
    sys.stdout.write(f"{line} ({result.detail})\n")
    return CODES[result.outcome]
