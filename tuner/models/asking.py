"""Has a ``py:`` model described by a worker, whose interpreter alone runs the model's code; it keeps nothing."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tuner.environment import worker_environment
from tuner.errors import HostError, UsageError
from tuner.messages import Describe, Described, Failed, decode_answer, encode
from tuner.records.config import ProcessSettings
from tuner.records.model import ModelFacts

LIMIT_S = 300.0


def ask_facts(model: str, path: Path, task: str, cache_dir: Path | None) -> ModelFacts:
    """Start a worker, have `model` described in it and wait for its end.

    Raises:
        UsageError: The model's code fails, ends its process, or does not come to an end.
        HostError: No worker can be started.
    """
    with tempfile.TemporaryDirectory(prefix="autotune-") as directory:
        env = worker_environment(
            os.environ, ProcessSettings(), offline=True, cache_dir=str((cache_dir or Path(directory)).absolute())
        )
        argv = [sys.executable, "-P", "-m", "tuner.worker"]
        command = encode(Describe(model=model, path=str(path), task=task))
        try:
            ended = subprocess.run(
                argv,
                input=command,
                capture_output=True,
                check=False,
                timeout=LIMIT_S,
                env={**env, "PYTHONSAFEPATH": "1"},
                cwd=directory,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise UsageError(f"{model} took more than {LIMIT_S:.0f} s: make the function quicker") from None
        except OSError as error:
            raise HostError(f"a worker cannot be started: {error}") from error
    answer = [decode_answer(line) for line in ended.stdout.splitlines()][-1:]
    if answer and isinstance(answer[0], Described):
        return answer[0].facts
    if answer and isinstance(answer[0], Failed):
        raise UsageError(answer[0].message)
    said = ended.stderr.decode(errors="replace").strip().splitlines()[-1:]
    raise UsageError(f"{model} ended its process (code {ended.returncode}): {said[0] if said else 'it said nothing'}")
