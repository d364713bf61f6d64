"""Compares p50 of `tuner.load` under `autotune exec` with p50 of a worker, for the best config of a profile.

    python studies/load_against_worker.py my.profile.json [--pairs 5]

Five pairs of fresh processes, four interleaved block pairs each, the idle one stopped; prints the ratio load / worker
with its 95% interval as JSON. Run nothing else meanwhile.
"""

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

from tuner.artifacts.places import cache_directory
from tuner.artifacts.store import Store
from tuner.hardware.detection import detect
from tuner.loading.files import find_artifacts, read_profile
from tuner.measure.stats import mean_interval
from tuner.messages import BlockDone, Load, Loaded, RunBlock, Warm, Warmed
from tuner.runner.local import LocalRunner

BLOCKS = 4
LOADED = """
import sys, json, numpy as np, tuner
from tuner.measure import timing
from tuner.worker.loaded import read_batches, distinct_shapes
profile, inputs, n_batches = sys.argv[1:]
batches = read_batches(__import__("pathlib").Path(inputs), int(n_batches))
model = tuner.load(profile)
call = lambda index: model.run(batches[index % len(batches)])
print("loaded", flush=True)
for line in sys.stdin:
    word, number = line.split()
    if word == "warm":
        print(timing.warm_up(call, distinct_shapes(batches), cap_s=float(number)).call_s, flush=True)
    else:
        print(json.dumps(timing.run_block(call, int(number), discard_calls=3, discard_s=0.05).latencies_s), flush=True)
"""


class LoadedDoor:
    """A process that opened the profile with `tuner.load` under `autotune exec`."""

    def __init__(self, profile: Path, inputs: Path, n_batches: int) -> None:
        command = [sys.executable, "-P", "-m", "tuner", "exec", str(profile), "--"]
        command += [sys.executable, "-P", "-c", LOADED, str(profile), str(inputs), str(n_batches)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._line() == "loaded"

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, word: str, number: float) -> str:
        """Send one request and return the answer."""
        assert self.process.stdin is not None
        os.kill(self.process.pid, signal.SIGCONT)
        self.process.stdin.write(f"{word} {number}\n")
        self.process.stdin.flush()
        answer = self._line()
        os.kill(self.process.pid, signal.SIGSTOP)
        return answer

    def block(self, n: int) -> float:
        """Return the median of one block in seconds."""
        return float(np.median(json.loads(self.ask("block", n))))

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()


class WorkerDoor:
    """A worker as trials use it."""

    def __init__(self, runner: LocalRunner, command: Load, process: object) -> None:
        self.process, _ = runner.spawn(process, "worker")
        self.process.ask(command, Loaded, limit_s=120)

    def warm(self) -> None:
        """Warm up and stop."""
        self.process.ask(Warm(), Warmed, limit_s=120)
        self.process.pause()

    def block(self, n: int) -> float:
        """Return the median of one block in seconds."""
        self.process.resume()
        done = self.process.ask(RunBlock(n=n), BlockDone, limit_s=120)
        self.process.pause()
        return median(done.latencies_s)

    def close(self) -> None:
        """End the process."""
        self.process.close()


def main() -> None:
    """Run the comparison and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile", type=Path)
    parser.add_argument("--prepared", type=Path, required=True, help="directory of the prepared workload in the store")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--calls", type=int, default=60)
    options = parser.parse_args()
    profile = read_profile(options.profile)
    cache = cache_directory(None)
    Store(cache)
    artifact = find_artifacts(profile, (options.profile.absolute().parent, cache), own=cache)
    n_batches = json.loads((options.prepared / "prepared.json").read_text())["n_batches"]
    model_path = json.loads((options.prepared / "prepared.json").read_text())["model"]["path"]
    config = profile.best.config
    work = cache / "load-against-worker"
    runner = LocalRunner(
        host=detect(), artifact_of=lambda _: work, prepared=options.prepared, work=work, cache_dir=cache
    )
    command = Load(
        backend=config.backend,
        artifact=str(artifact or model_path),
        session=config.session,
        prepared=str(options.prepared),
        cache_dir=str(cache / "engines"),
    )
    ratios = []
    for _ in range(options.pairs):
        doors = [LoadedDoor(options.profile, options.prepared / "inputs.npz", n_batches)]
        doors[0].ask("warm", 10.0)
        worker = WorkerDoor(runner, command, config.process)
        worker.warm()
        pairs = []
        for _ in range(BLOCKS):
            order = [("load", doors[0]), ("worker", worker)]
            random.shuffle(order)
            found = {name: door.block(options.calls) for name, door in order}
            pairs.append(math.log(found["load"] / found["worker"]))
        ratios.append(median(pairs))
        doors[0].close()
        worker.close()
        time.sleep(0.5)
    interval = mean_interval(ratios, 0.025)
    result = {
        "ratio": math.exp(interval.mean),
        "ci95": [math.exp(interval.low), math.exp(interval.high)],
        "pairs": [math.exp(ratio) for ratio in ratios],
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
