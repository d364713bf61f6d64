"""Fixtures of several rooms: a tiny ONNX model, its prepared workload, and a valid profile with variations."""

import contextlib
import json
import os
import resource
import subprocess
import sys

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run in two processes: two threads in each would wait

import numpy as np

from tuner.artifacts.store import sha256_of
from tuner.records.config import Config, Placement, ProcessSettings
from tuner.records.measurement import Effective, Failure, Fidelity, Latency, Measurement
from tuner.records.model import ModelFacts, Prepared, TensorSpec
from tuner.records.profile import Profile
from tuner.records.workload import Workload
from tuner.space.loading import load_space
from tuner.study.store import TrialRecord

WIDTH = 16
MAKE_MODEL = """
import sys
from onnx import TensorProto as T, helper as h, save
node = h.make_node("ReduceMean", ["x"], ["output"], axes=[1], keepdims=0)
inputs = [h.make_tensor_value_info("x", T.FLOAT, ["batch", 16])]
outputs = [h.make_tensor_value_info("output", T.FLOAT, ["batch"])]
graph = h.make_graph([node], "mean", inputs, outputs)
save(h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=8), sys.argv[1])
"""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items):
    """Keep a file's tests in one of the processes that tests run in, and all whole runs of the command in one."""
    for item in items:
        is_whole = "e2e" in item.path.parts
        item.add_marker(pytest.mark.xdist_group("e2e" if is_whole else str(item.path)))


@pytest.fixture(scope="session")
def tiny_onnx(tmp_path_factory):
    """Return the path of an ONNX file that answers the mean of each row of ``x`` (batch, 16), as the fake backend."""
    path = tmp_path_factory.mktemp("model") / "mean.onnx"
    subprocess.run([sys.executable, "-P", "-c", MAKE_MODEL, str(path)], check=True)
    return path


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Return a directory with a prepared workload for the fake backend, written without any engine."""
    directory = tmp_path_factory.mktemp("prepared")
    rows = np.random.default_rng(0).normal(size=(20, 1, WIDTH)).astype(np.float32)
    np.savez(directory / "inputs.npz", **{f"{index}.x": rows[index] for index in range(2)})
    np.savez(directory / "samples.npz", **{f"{index}.x": row for index, row in enumerate(rows)})
    np.savez(directory / "references.npz", **{f"{index}.output": row.mean(axis=1) for index, row in enumerate(rows)})
    facts = ModelFacts(
        source="mean.onnx", kind="onnx", path=str(directory), sha256="0" * 64, task="forward", weight_bytes=0
    )
    record = Prepared(
        model=facts,
        workload=Workload(task="forward"),
        inputs=(TensorSpec(name="x", dtype="float32", shape=(None, WIDTH)),),
        outputs=("output",),
        n_batches=2,
        n_samples=20,
        items_per_batch=1,
        method="graph",
        reference="numpy float32",
    )
    (directory / "prepared.json").write_text(record.to_json())
    return directory


@pytest.fixture
def full_disk():
    """Return a context in which no file of this process grows beyond some bytes, as on a full disk."""

    @contextlib.contextmanager
    def limited(limit_bytes):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        writes_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # cut-off bytecode outlives the test
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            sys.dont_write_bytecode = writes_bytecode

    return limited


@pytest.fixture
def measurement():
    """Return a function that makes a measurement with a median (seconds) and whatever else is given."""

    def make(p50=0.01, **fields):
        latency = Latency(p50=p50, p90=2 * p50, mean=p50, min=p50 / 2, n=400, ci95={"p50": (0.9 * p50, 1.1 * p50)})
        return Measurement(
            latency_s=latency,
            **{
                "throughput_items_per_s": 1 / p50,
                "load_s": 1.5,
                "peak_rss_bytes": 512 << 20,
                "fidelity": Fidelity(method="graph", rel_error_max=0.001, n=64),
                "effective": Effective(threads=2, cpus=(0, 1), precision="float32"),
                **fields,
            },
        )

    return make


@pytest.fixture
def profile_document(measurement):
    """Return a function that makes a valid profile as JSON values; keyword arguments replace top-level keys."""

    def make(**changes):
        best = Config(
            backend="onnxruntime",
            session={"intra_op_threads": 2, "allow_spinning": False},
            process=ProcessSettings(placement=Placement(policy="spread", n_cpus=2)),
        )
        base = Config(backend="onnxruntime")
        document = {
            "schema": "tuner.profile/1",
            "created_at": "2026-01-02T03:04:05+00:00",
            "tuner_version": "0.1.0",
            "command": ["autotune", "--model", "mean.onnx"],
            "fingerprint": {"hardware": "h", "software": "s", "model": "m", "workload": "w"},
            "hardware": {},
            "software": {},
            "model": {"source": "mean.onnx", "sha256": "0" * 64, "task": "forward"},
            "workload": {"task": "forward"},
            "objective": {},
            "effort": {
                "budget_s": 300.0,
                "wall_s": 290.5,
                "build_s": 10.0,
                "measure_s": 250.0,
                "overhead_s": 30.5,
                "trials": 12,
                "pruned": 3,
                "rejected": 2,
                "seed": 0,
                "sampler": "auto",
                "space_sha256": "5" * 64,
                "space_size": 48,
                "stopped_by": "budget",
            },
            "baseline": {"config": base.model_dump(), "measurement": measurement(0.02).model_dump(mode="json")},
            "best": {"config": best.model_dump(mode="json"), "measurement": measurement(0.01).model_dump(mode="json")},
            "fallback": {"config": base.model_dump()},
            "verdict": "WIN",
            "speedup": {"ratio": 2.0, "ci95": [1.9, 2.1], "pairs": 5, "mde": 0.02},
        }
        return {**document, **changes}

    return make


@pytest.fixture
def profile(profile_document):
    """Return a function that makes a Profile; keyword arguments replace top-level keys of the document."""

    def make(**changes):
        return Profile.from_json(json.dumps(profile_document(**changes)), source="fixture")

    return make


@pytest.fixture
def artifact_entry():
    """Return a function that describes a file below a base directory as a profile does."""

    def make(base, name):
        path = base / name
        return {"path": name, "sha256": sha256_of(path), "bytes": path.stat().st_size}

    return make


ENGINE = """
schema = "tuner.space/1"
backend = "{name}"

[artifacts]
fp32 = ["export"]
int8 = ["export", "quantize"]

[session.precision]
kind = "choice"
values = ["float32", "bfloat16"]
numerics = true

[session.threads]
kind = "integer"
min = 1
max = {threads}
default = {threads}

[session.spin]
kind = "choice"
values = [true, false]
when = "session.threads > 1"

"""
STEPS = {
    "export": "",
    "quantize": '[artifact.quantize.per_channel]\nkind = "choice"\nvalues = [true, false]\nnumerics = true\n',
}


@pytest.fixture(scope="session")
def write_engine_space():
    """Return a function that writes engines with artifacts, precisions and threads, and what is added to them."""

    def write(folder, added="", names=("alpha", "beta"), threads=4):
        for name in names:
            (folder / f"{name}-engine.toml").write_text(ENGINE.format(name=name, threads=threads) + added)
        for step, text in STEPS.items():
            (folder / f"{step}-step.toml").write_text(f'schema = "tuner.space/1"\nstep = "{step}"\n{text}')
        return sorted(folder.glob("*.toml"))

    return write


@pytest.fixture(scope="session")
def make_engine_space(tmp_path_factory, write_engine_space):
    """Return a function that resolves what `write_engine_space` writes."""

    def make(*added, **shape):
        return load_space(write_engine_space(tmp_path_factory.mktemp("spaces"), *added, **shape)).resolve({}, {}, {})

    return make


@pytest.fixture
def engine_space(make_engine_space):
    """Return a space of two engines, each with two artifact chains and two precisions."""
    return make_engine_space()


@pytest.fixture
def make_record():
    """Return a function that makes the record of a trial: a value, or a failure where there is none."""

    def make(number, config, value=0.0, purpose="search", **fields):
        failure = Failure(stage="load", kind="crash", message="SIGSEGV: boom") if value is None else None
        state = "failed" if value is None else "measured"
        return TrialRecord(
            number=number, purpose=purpose, config=config, state=state, value=value, failure=failure, **fields
        )

    return make
