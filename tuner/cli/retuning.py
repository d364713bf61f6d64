"""`autotune retune`: tunes again from an older profile; what to tune, and how, is the profile's own request."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tuner.cli.numbers import WHOLE


def retune(
    profile: Annotated[Path, Parameter(help="the older profile")],
    /,
    *,
    model: Annotated[str | None, Parameter(help="where the model is now, if it moved")] = None,
    budget: Annotated[str | None, Parameter(help="wall time; default: as before")] = None,
    trials: Annotated[int | None, WHOLE, Parameter(help="most trials; default: as before")] = None,
    output: Annotated[str | None, Parameter(help="default: the profile's own place")] = None,
    study: Annotated[str | None, Parameter(help="default: as cache-dir")] = None,
    storage: Annotated[str | None, Parameter(help="Optuna storage URL; one with a password is not remembered")] = None,
    cache_dir: Annotated[str | None, Parameter(help="default: as before, if below the profile's directory")] = None,
    space: Annotated[
        tuple[str, ...] | None, Parameter(negative="", help="further TOML files; default: as cache-dir")
    ] = None,
    baseline: Annotated[str | None, Parameter(help="CONFIG.json; default: as cache-dir")] = None,
    progress: Annotated[Literal["auto", "plain", "json", "none"], Parameter()] = "auto",
    json: Annotated[bool, Parameter(negative="", help="print the profile as one JSON document")] = False,
    trust_code: Annotated[bool, Parameter(negative="", help="run the code of a py: model or a metric")] = False,
    trust_remote_code: Annotated[bool, Parameter(negative="", help="run code that the model brings")] = False,
) -> int:
    """Tune again from a profile: says what changed since, tries the old best and its neighbours first.

    Artifacts whose key still holds are not built again; nothing that was measured before is believed. Exit codes as
    `autotune tune`.
    """
    from tuner.loading.files import read_profile
    from tuner.reporting.progress import reporter
    from tuner.reporting.summary import render_summary
    from tuner.tuning.request import parse_duration
    from tuner.tuning.retuning import retune as tune_again

    with reporter(progress) as on_event:
        result = tune_again(
            read_profile(profile),
            profile,
            on_event=on_event,
            model=model,
            budget_s=None if budget is None else parse_duration(budget),
            trials=trials,
            output=output,
            study=study,
            storage=storage,
            cache_dir=cache_dir,
            space=space,
            baseline=baseline,
            trust_code=trust_code or None,
            trust_remote_code=trust_remote_code or None,
        )
    if json:
        sys.stdout.write(result.profile.to_json(indent=1) + "\n")
    else:
        render_summary(result.profile, result.path)
    return 130 if result.profile.incomplete else 0
