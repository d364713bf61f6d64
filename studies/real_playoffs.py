"""Real playoffs whose truth is known: A/A of one config against itself, and a worker with a known handicap of 10%.

    python studies/real_playoffs.py aa --n 20 --out aa.jsonl
    python studies/real_playoffs.py handicap --n 10 --out handicap.jsonl

Both run ONNX Runtime on a chain of equal matrix layers, made here: A/A opens the same graph in both arms (20 layers);
the handicapped arm has 22 layers, the other 20, so the true ratio is 1.10 (but for the call's own overhead). One line
of JSON a playoff; run again with the same --out to go on. Run nothing else meanwhile.
"""

import argparse
import fcntl
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from tuner.artifacts.places import cache_directory
from tuner.artifacts.store import Store
from tuner.compare.playoff import run_playoff
from tuner.compare.rig import Rig
from tuner.hardware.detection import detect
from tuner.models.inspect import inspect
from tuner.records.config import Config, Placement, ProcessSettings
from tuner.records.workload import Objective, Workload
from tuner.runner.local import LocalRunner
from tuner.runner.sweeping import become_subreaper
from tuner.study.building import Workshop

LAYERS = 20
HANDICAP = 2
WIDTH = 384
ROWS = 64


def make_chain(path: Path, layers: int) -> Path:
    """Write a graph of `layers` equal MatMul + Relu layers, (ROWS, WIDTH) float32 in and out."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    nodes, weights, name = [], [], "x"
    for layer in range(layers):
        weight = (random.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH)).astype(np.float32)
        weights.append(numpy_helper.from_array(weight, f"w{layer}"))
        nodes.append(helper.make_node("MatMul", [name, f"w{layer}"], [f"m{layer}"]))
        nodes.append(helper.make_node("Relu", [f"m{layer}"], [f"r{layer}"]))
        name = f"r{layer}"
    nodes.append(helper.make_node("Identity", [name], ["y"]))
    ports = [helper.make_tensor_value_info(port, TensorProto.FLOAT, (ROWS, WIDTH)) for port in ("x", "y")]
    graph = helper.make_graph(nodes, "chain", ports[:1], ports[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, path)
    return path


def main() -> None:
    """Run the playoffs and append one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("aa", "handicap"))
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lock", type=Path, help="a file to lock while a playoff runs, where others wait for it too")
    parser.add_argument("--for-s", type=float, help="no look begins after so many seconds, as in a run with a budget")
    options = parser.parse_args()
    become_subreaper()
    done = len(options.out.read_text().splitlines()) if options.out.exists() else 0
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        graphs = {LAYERS: make_chain(work / "chain20.onnx", LAYERS)}
        graphs[LAYERS + HANDICAP] = make_chain(work / "chain22.onnx", LAYERS + HANDICAP)
        for number in range(done, options.n):
            lock = (options.lock or work / "lock").open("w")
            fcntl.flock(lock, fcntl.LOCK_EX)
            line = one_playoff(options.what, graphs, work, seed=1000 + number, for_s=options.for_s)
            lock.close()
            with options.out.open("a") as file:
                file.write(json.dumps({"number": number, "what": options.what, **line}) + "\n")
            print(options.what, number, line["verdict"], line["ratio"], line["ci95"], line["pairs"], flush=True)


def one_playoff(what: str, graphs: dict[int, Path], work: Path, *, seed: int, for_s: float | None) -> dict[str, object]:
    """Play one pair of configs off against each other; the candidate is the faster one of a handicap."""
    process = ProcessSettings(placement=Placement(policy="spread", n_cpus=2))
    settings = {"intra_op_threads": 2, "allow_spinning": False}
    candidate = Config(backend="onnxruntime", session=settings, process=process)
    baseline = Config(backend="onnxruntime", session={**settings, "graph_optimization_level": "all"}, process=process)
    slow = graphs[LAYERS + HANDICAP] if what == "handicap" else graphs[LAYERS]
    store = Store(cache_directory(None))
    facts = inspect(str(graphs[LAYERS]))
    runner: LocalRunner | None = None
    workshop = Workshop(
        store=store,
        spawn=lambda *a: runner.spawn(*a),  # noqa: PLW0108 - the runner is made after the workshop
        model=facts,
        on_build=lambda *_: None,  # type: ignore[union-attr]
    )
    runner = LocalRunner(
        host=detect(),
        artifact_of=lambda config: slow if config == baseline else graphs[LAYERS],
        prepared=work,
        work=work,
        cache_dir=store.root,
    )
    workshop.prepare(Workload(task="forward"), None, max_samples=16, sample_budget_s=5.0)
    assert workshop.prepared is not None
    runner.prepared = workshop.prepared
    rig = Rig(runner, Objective(), budget_s=600.0, seed=seed)
    host_class = rig.audit()
    began = time.monotonic()
    outcome = run_playoff(candidate, baseline, rig, deadline_s=None if for_s is None else rig.clock.now() + for_s)
    speedup = outcome.speedup
    return {
        "verdict": outcome.verdict,
        "ratio": round(speedup.ratio, 4) if speedup else None,
        "ci95": [round(value, 4) for value in speedup.ci95] if speedup else None,
        "mde": round(speedup.mde, 4) if speedup and speedup.mde else None,
        "pairs": len(outcome.pairs),
        "stopped_by": outcome.stopped_by,
        "d": [round(value, 5) for value in outcome.d],
        "host_class": str(host_class),
        "low_confidence": outcome.low_confidence,
        "redone": rig.gate.redone,
        "block_pairs": rig.gate.pairs,
        "wall_s": round(time.monotonic() - began, 1),
    }


if __name__ == "__main__":
    main()
