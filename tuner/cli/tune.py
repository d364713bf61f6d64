"""`autotune tune`: reads the options, shows progress and prints the summary; tuning itself is in tuner.tuning."""

import sys
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from tuner.cli.numbers import WHOLE

TRAFFIC = Group("The traffic", sort_key=2)
SEARCH = Group("The search", sort_key=3)
PLACES = Group("Where things go", sort_key=4)
TRUST = Group("Trust", sort_key=5)


def tune(
    *,
    model: Annotated[str, Parameter(help="directory, .onnx, .xml, pkg:MODULE/SUBDIR, py:MODULE:FUNCTION or hub id")],
    task: Annotated[str | None, Parameter(help="Hugging Face task name or forward; default: from the model")] = None,
    target: Annotated[str, Parameter(help="p50 p90 p95 p99 mean throughput memory load_time or a path")] = "p50",
    max: Annotated[list[str], Parameter(name="--max", help="PATH=V, e.g. latency_s.p99=30ms", negative="")] = [],  # noqa: A002, B006
    min: Annotated[list[str], Parameter(name="--min", help="PATH=V, e.g. fidelity.cosine_min=0.999", negative="")] = [],  # noqa: A002, B006
    constraint: Annotated[list[str], Parameter(help="quoted, e.g. 'load_s <= 5s'", negative="")] = [],  # noqa: B006
    data: Annotated[str | None, Parameter(group=TRAFFIC, help=".jsonl, .txt or .npz; default: built-in texts")] = None,
    metric: Annotated[
        str | None, Parameter(group=TRAFFIC, help="accuracy, f1, spearman, recall@10 or module:function, on --data")
    ] = None,
    max_loss: Annotated[
        float | None, Parameter(group=TRAFFIC, help="most that the metric may lose against float32; default: 0.01")
    ] = None,
    batch_size: Annotated[int, WHOLE, Parameter(group=TRAFFIC, help="rows of one call")] = 1,
    lengths: Annotated[str, Parameter(group=TRAFFIC, help="tokens, e.g. 128,512, or a file of lengths")] = "128",
    concurrency: Annotated[int, WHOLE, Parameter(group=TRAFFIC, help="callers at once")] = 1,
    rate: Annotated[
        float | None, Parameter(group=TRAFFIC, help="calls a second, Poisson; latency from the scheduled arrival")
    ] = None,
    budget: Annotated[str, Parameter(group=SEARCH, help="wall time, e.g. 90s, 15m, 1h")] = "15m",
    trials: Annotated[int | None, WHOLE, Parameter(group=SEARCH, help="most trials")] = None,
    seed: Annotated[int, WHOLE, Parameter(group=SEARCH)] = 0,
    sampler: Annotated[str, Parameter(group=SEARCH, help="auto, tpe, random or brute")] = "auto",
    backends: Annotated[str | None, Parameter(group=SEARCH, help="a,b; default: all that are installed")] = None,
    space: Annotated[
        list[str], Parameter(group=SEARCH, help="a TOML file that adds to or changes the space", negative="")
    ] = [],  # noqa: B006
    fix: Annotated[
        list[str], Parameter(group=SEARCH, help="KEY=VALUE, e.g. session.allow_spinning=false", negative="")
    ] = [],  # noqa: B006
    baseline: Annotated[
        str | None, Parameter(group=SEARCH, help="a config.json to beat instead of the default")
    ] = None,
    output: Annotated[str | None, Parameter(group=PLACES, help="default: ./<model>.profile.json")] = None,
    study: Annotated[str | None, Parameter(group=PLACES, help="default: ./studies/<slug>-<key>/")] = None,
    storage: Annotated[
        str | None, Parameter(group=PLACES, help="Optuna storage URL; default: SQLite in the study")
    ] = None,
    cache_dir: Annotated[str | None, Parameter(group=PLACES, help="default: $XDG_CACHE_HOME/autotune")] = None,
    progress: Annotated[Literal["auto", "plain", "json", "none"], Parameter(group=PLACES)] = "auto",
    json: Annotated[bool, Parameter(group=PLACES, negative="", help="print the profile as one JSON document")] = False,
    trust_code: Annotated[bool, Parameter(group=TRUST, negative="", help="run the code of a py: model")] = False,
    trust_remote_code: Annotated[
        bool, Parameter(group=TRUST, negative="", help="run code that the model brings")
    ] = False,
) -> int:
    """Tune a model on this host and write a profile.

    Every trial runs in a process of its own; the winner must beat the default in a fresh paired playoff. A rerun of the
    same command goes on where it stopped, and returns the profile at once when it is finished.
    """
    from tuner.reporting.progress import reporter
    from tuner.reporting.summary import render_summary
    from tuner.tuning.line import run
    from tuner.tuning.request import check_sampler, make_request, parse_duration, parse_lengths

    request = make_request(
        {
            "model": model,
            "task": task,
            "target": target,
            "at_most": tuple(max),
            "at_least": tuple(min),
            "constraint": tuple(constraint),
            "data": data,
            "metric": metric,
            "max_loss": max_loss,
            "batch_size": batch_size,
            "lengths": parse_lengths(lengths),
            "concurrency": concurrency,
            "rate_per_s": rate,
            "budget_s": parse_duration(budget),
            "trials": trials,
            "seed": seed,
            "sampler": check_sampler(sampler),
            "backends": tuple(name.strip() for name in backends.split(",") if name.strip())
            if backends is not None
            else None,
            "space": tuple(space),
            "fix": tuple(fix),
            "baseline": baseline,
            "output": output,
            "study": study,
            "storage": storage,
            "cache_dir": cache_dir,
            "trust_code": trust_code,
            "trust_remote_code": trust_remote_code,
            "command": ("autotune", *sys.argv[1:]),
        }
    )
    with reporter(progress) as on_event:
        result = run(request, on_event)
    if json:
        sys.stdout.write(result.profile.to_json(indent=1) + "\n")
    else:
        render_summary(result.profile, result.path)
    return 130 if result.profile.incomplete else 0
