"""Commands of a worker that make files or probe the host; nothing here is timed against a candidate."""

import time
from pathlib import Path
from typing import cast

from tuner.errors import UsageError
from tuner.messages import Build, Built, Describe, Described, Prepare, PreparedFiles, Probe, Probed
from tuner.plugins import plugin
from tuner.steps.base import Step


def prepare_workload(command: Prepare) -> PreparedFiles:
    """Make inputs, samples and references of the workload."""
    from tuner.models.prepare import prepare

    start = time.perf_counter()
    _, call_s = prepare(command)
    return PreparedFiles(
        files=files_below(Path(command.directory)), prepare_s=time.perf_counter() - start, call_s=call_s
    )


def describe_model(command: Describe) -> Described:
    """Call the function of a model that is code."""
    from tuner.models.functions import describe

    return Described(facts=describe(command.model, Path(command.path), command.task))


def build_step(command: Build) -> Built:
    """Run one build step in its directory."""
    step = cast("Step", plugin("tuner.steps", command.step))
    settings = step.Settings.from_json_object(command.settings, source=f"step {command.step}")
    directory = Path(command.directory)
    start = time.perf_counter()
    step.build({name: Path(path) for name, path in command.inputs.items()}, settings, directory)
    build_s = time.perf_counter() - start
    files = files_below(directory)
    if not files:
        raise UsageError(f"step {command.step} built nothing: report it to whoever made the step")
    return Built(build_s=build_s, files=files)


def probe(command: Probe) -> Probed:
    """Run the sentinel loops."""
    from tuner.measure.sentinel import run_sentinel

    return Probed(samples_s={"sentinel": tuple(run_sentinel(command.repeats))})


def files_below(directory: Path) -> tuple[str, ...]:
    """Return the files below `directory`, relative, sorted."""
    return tuple(sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()))
