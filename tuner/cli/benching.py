"""`autotune bench`: one configuration measured in fresh processes; it compares nothing."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tuner.cli.numbers import WHOLE
from tuner.errors import UsageError

LEAST_PROCESSES = 2


def bench(
    what: Annotated[Path, Parameter(help="a profile, or a config.json (then --model)")],
    /,
    *,
    model: Annotated[str | None, Parameter(help="the model; for a profile only if it moved")] = None,
    lengths: Annotated[str, Parameter(help="tokens, for a config.json")] = "128",
    batch_size: Annotated[int, WHOLE, Parameter(help="rows of one call, for a config.json")] = 1,
    processes: Annotated[int, WHOLE, Parameter(help="fresh processes")] = 5,
    cache_dir: Annotated[str | None, Parameter(help="default: $XDG_CACHE_HOME/autotune")] = None,
    progress: Annotated[Literal["auto", "plain", "json", "none"], Parameter()] = "auto",
    json: Annotated[bool, Parameter(negative="", help="print one JSON document")] = False,
    trust_code: Annotated[bool, Parameter(negative="", help="run the code of a py: model or a metric")] = False,
) -> int:
    """Measure the best configuration of a profile, or a configuration of your own, in fresh processes."""
    from tuner.loading.files import looks_like_profile, read_profile
    from tuner.records.config import Config
    from tuner.reporting.benches import render_bench
    from tuner.reporting.progress import reporter
    from tuner.tuning.benching import bench_file, bench_profile
    from tuner.tuning.request import parse_lengths

    if processes < LEAST_PROCESSES:
        raise UsageError("--processes: at least two are needed, for an interval")
    try:
        text = what.read_bytes()
    except OSError as error:
        raise UsageError(f"{what}: cannot be read ({error.strerror})") from error
    is_profile = looks_like_profile(text)
    if not is_profile and model is None:
        raise UsageError("bench CONFIG.json: say which model with --model")
    with reporter(progress) as on_event:
        if is_profile:
            result = bench_profile(
                read_profile(what),
                what,
                processes=processes,
                model=model,
                cache_dir=cache_dir,
                trust_code=trust_code,
                on_event=on_event,
            )
        else:
            assert model is not None
            result = bench_file(
                Config.from_json(text, source=str(what)),
                model,
                lengths=parse_lengths(lengths),
                batch_size=batch_size,
                processes=processes,
                cache_dir=cache_dir,
                trust_code=trust_code,
                on_event=on_event,
            )
    if json:
        sys.stdout.write(result.to_json(indent=1) + "\n")
    else:
        render_bench(result.measured, result.target, (result.figure, result.low, result.high), result.processes)
    return 0
