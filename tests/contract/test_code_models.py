"""Models that are code (`py:`): described by a worker, opened by every engine, and noticed when they change."""

import functools
import os
import subprocess
import sys
import types

import numpy as np
import pytest

from tuner.backends.base import Context, Unsupported
from tuner.errors import UsageError
from tuner.messages import CheckFidelity
from tuner.models.inspect import inspect
from tuner.models.judging import judge, read_numbered
from tuner.plugins import plugin

NET = """
import numpy as np
import torch
from torch import nn
from blocks import Block

def make():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                        Block(16), Block(16), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    return net, torch.randn(1, 3, 32, 32)

class Two(nn.Module):
    def forward(self, left, right, scale=1.0):
        return {"sum": (left + right) * scale, "product": left * right}

def two():
    return Two(), {"right": torch.rand(2, 4), "left": np.arange(8, dtype=np.float32).reshape(2, 4), "scale": 2.0}

class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 4)
    def forward(self, codes, *more):
        return self.table(codes), more[0] + 1

def pair():
    return Counting(), (torch.tensor([[0, 6, 3]], dtype=torch.int32), torch.zeros(1, 2, dtype=torch.bool))

def unseeded():
    return nn.Linear(4, 4), torch.rand(1, 4)

def noisy():
    return nn.Linear(4, 4).requires_grad_(False).apply(lambda part: part.weight.copy_(torch.from_numpy(
        np.random.default_rng().standard_normal((4, 4)).astype(np.float32)))), torch.rand(1, 4)

def nothing():
    return nn.Linear(4, 4)

def fails():
    raise RuntimeError("no such\\nfile")

def leaves():
    raise SystemExit(3)

def from_disk():
    net = nn.Linear(4, 4)
    net.load_state_dict(torch.load("weights.pt", weights_only=True))
    return net, torch.rand(1, 4)
"""
BLOCKS = """
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
    def forward(self, x):
        return x + self.body(x)
"""
FAITHFUL = {
    "pytorch": {"threads": 1},
    "onnxruntime": {"intra_op_threads": 1},
    "openvino": {"inference_precision": "float32"},
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The current directory, with a residual net of random weights in two modules; nothing of it stays imported."""
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "blocks.py").write_text(BLOCKS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("net", "blocks"):
        sys.modules.pop(name, None)


@functools.cache
def described(name, task):
    """Return what a worker says of a function: the same wherever the modules lie."""
    return inspect(f"py:net:{name}", task, trust_code=True)


@pytest.fixture
def prepared(place, prepare_in):
    """Return a function that prepares ``py:net:<name>`` and gives the facts, the record and the directory."""

    def make(name, task=None, **asked):
        facts = described(name, task).model_copy(update={"path": str(place / "net.py")})
        directory = place / "prepared"
        record, _ = prepare_in(facts, directory, **asked)
        return types.SimpleNamespace(facts=facts, record=record, directory=directory)

    return make


def open_with(backend, artifact, made, place, **settings):
    """Open an artifact, or the source."""
    engine = plugin("tuner.backends", backend)
    context = Context(model=made.facts, workload=made.record.workload, cache_dir=str(place / "cache"))
    return engine.open(artifact, engine.SessionSettings(**(FAITHFUL[backend] | settings)), context)


def build(step, made, directory, **asked):
    """Run a step on a prepared model."""
    directory.mkdir()
    found = plugin("tuner.steps", step)
    found.build({"source": made.directory, "prepared": made.directory}, found.Settings(**asked), directory)
    return directory


def error_of(session, made):
    """Return the largest relative error over the samples."""
    return judge(made.directory, made.record, session.run, CheckFidelity(max_samples=16)).fidelity.rel_error_max


def test_description_comes_from_a_worker(place):
    """Kind, sizes and the file; the code ran in no process of ours."""
    facts = inspect("py:net:make", trust_code=True)
    assert (facts.kind, facts.task, facts.architecture, facts.is_convolutional) == (
        "python",
        "forward",
        "Sequential",
        True,
    )
    assert facts.path == str(place / "net.py")
    assert facts.n_parameters == 5306
    assert {"net", "blocks"}.isdisjoint(sys.modules)


def test_nothing_runs_without_trust(place):
    """Refused with the option that allows it; the module was not even read."""
    (place / "net.py").write_text("open('ran', 'w')")
    with pytest.raises(UsageError, match=r"py:net:make runs code of its own: give --trust-code"):
        inspect("py:net:make")
    assert not (place / "ran").exists()


@pytest.mark.parametrize("changed", ["net.py", "blocks.py"])
def test_changed_source_is_another_model(place, changed):
    """The function's own file and a module beside it that it imports."""
    before = inspect("py:net:make", trust_code=True).sha256
    (place / changed).write_text((place / changed).read_text() + "\n# changed\n")
    assert inspect("py:net:make", trust_code=True).sha256 != before


def test_changed_weights_are_another_model(place, prepared):
    """Weights on disk belong to the identity; found relative to the module; a worker that meets others stops."""
    import torch

    torch.save({"weight": torch.eye(4), "bias": torch.zeros(4)}, place / "weights.pt")
    made = prepared("from_disk")
    assert inspect("py:net:from_disk", trust_code=True).sha256 == made.facts.sha256
    torch.save({"weight": torch.eye(4), "bias": torch.ones(4)}, place / "weights.pt")
    assert inspect("py:net:from_disk", trust_code=True).sha256 != made.facts.sha256
    with pytest.raises(UsageError, match="gives other weights than before"):
        open_with("pytorch", place / "net.py", made, place)


def test_unseeded_weights_are_the_same_everywhere(place, prepared):
    """Torch's own generator starts the same at every call, and is left as it was."""
    import torch

    made = prepared("unseeded")
    state = torch.random.get_rng_state()
    assert error_of(open_with("pytorch", place / "net.py", made, place), made) == 0
    assert torch.equal(torch.random.get_rng_state(), state)


def test_weights_drawn_anew_are_refused(prepared):
    """Nothing could be compared: said when the reference is made."""
    with pytest.raises(UsageError, match=r"py:net:noisy gives other weights than before.*seed them"):
        prepared("noisy")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", r"py:net:nothing returned Linear: it must return an nn\.Module and example inputs"),
        ("fails", r"py:net:fails: RuntimeError: no such file"),
        ("leaves", r"py:net:leaves: SystemExit: 3"),
        ("absent", r"py:net:absent: AttributeError: module 'net' has no attribute 'absent'"),
    ],
)
@pytest.mark.usefixtures("place")
def test_what_is_no_model_is_refused_in_one_line(name, message):
    """The cause, and what is expected."""
    with pytest.raises(UsageError, match=message) as caught:
        inspect(f"py:net:{name}", trust_code=True)
    assert "\n" not in str(caught.value)


WAYS = [("pytorch", None), ("onnxruntime", "onnx_export"), ("openvino", "onnx_export"), ("openvino", "ov_convert")]


@pytest.mark.filterwarnings("ignore")  # the libraries' own
@pytest.mark.parametrize("name", ["make", "two", "pair"])
@pytest.mark.parametrize(("backend", "step"), WAYS)
def test_engines_answer_what_the_module_answers(place, prepared, backend, step, name):
    """A residual net; keyword inputs with a constant; whole numbers and truth values with two unnamed outputs."""
    if plugin("tuner.backends", backend).installed() is None:
        pytest.skip(f"{backend} is not installed")
    made = prepared(name)
    artifact = place / "net.py" if step is None else build(step, made, place / "built")
    session = open_with(backend, artifact, made, place)
    assert error_of(session, made) < 1e-4
    session.close()


def test_names_follow_forward(prepared):
    """Keywords of a dict, arguments by position, numbers for what has no name; plain values are constants."""
    made = prepared("two")
    assert [(spec.name, spec.dtype, spec.shape) for spec in made.record.inputs] == [
        ("right", "float32", (2, 4)),
        ("left", "float32", (2, 4)),
    ]
    assert (made.record.outputs, made.record.items_per_batch, made.record.texts) == (("sum", "product"), 2, "examples")


def test_inputs_resemble_the_example(prepared):
    """The first sample is the example; whole numbers stay those of the example, what is constant stays."""
    made = prepared("pair")
    assert made.record.outputs == ("output_0", "output_1")
    samples = read_numbered(made.directory / "samples.npz")
    assert [sample["codes"].tolist() for sample in samples[:1]] == [[[0, 6, 3]]]
    assert {tuple(sorted(sample["codes"].ravel())) for sample in samples} == {(0, 3, 6)}
    assert not any(sample["input_1"].any() for sample in samples)


@pytest.mark.filterwarnings("ignore")  # the libraries' own
@pytest.mark.parametrize(("backend", "step"), WAYS[1:])
def test_batch_is_free_on_request(place, prepared, backend, step):
    """Asked for three rows, the graph takes three, one, and any other number."""
    made = prepared("make", batch_size=3)
    assert [spec.shape for spec in made.record.inputs] == [(None, 3, 32, 32)]
    assert read_numbered(made.directory / "inputs.npz")[0]["input"].shape == (3, 3, 32, 32)
    session = open_with(backend, build(step, made, place / "built"), made, place)
    assert error_of(session, made) < 1e-4
    rows = np.zeros((5, 3, 32, 32), np.float32)
    assert session.run({"input": rows})["output"].shape == (5, 10)
    session.close()


@pytest.mark.parametrize(
    ("asked", "largest"),
    [({"channels_last": True}, 1e-4), ({"precision": "bfloat16_autocast"}, 0.03), ({"precision": "bfloat16"}, 0.03)],
)
def test_layout_and_precision_are_read_back(place, prepared, asked, largest):
    """Channels last from the weights; reduced precision moves the answers, a little."""
    made = prepared("make")
    session = open_with("pytorch", place / "net.py", made, place, **asked)
    effective = session.effective()
    assert {name: effective[name] for name in asked} == asked
    error = error_of(session, made)
    assert error < largest
    assert (error > 1e-4) == ("precision" in asked)


def test_layout_needs_a_convolution(place, prepared):
    """A setting without meaning is a named reason."""
    made = prepared("two")
    with pytest.raises(Unsupported, match="channels_last: the model has no convolution"):
        open_with("pytorch", place / "net.py", made, place, channels_last=True)


def test_classes_of_images_are_compared_by_the_best_one(prepared):
    """With --task image-classification the top class counts."""
    made = prepared("make", "image-classification")
    assert (made.record.method, made.record.outputs) == ("classes", ("output",))


def test_own_arrays_are_the_traffic(place, prepared):
    """Rows of an .npz by the names of the inputs; the others are the example's."""
    np.savez(place / "rows.npz", left=np.full((8, 4), 3, np.float32))
    made = prepared("two", data=str(place / "rows.npz"))
    batch = read_numbered(made.directory / "inputs.npz")[1]
    assert (batch["left"].tolist(), batch["right"].shape) == ([[3.0] * 4] * 2, (2, 4))
    assert len(read_numbered(made.directory / "inputs.npz")) == 4


@pytest.mark.slow
@pytest.mark.parametrize("asked", [{}, {"channels_last": True, "precision": "bfloat16_autocast", "simdlen": 256}])
def test_package_answers_what_the_module_answers(place, prepared, asked):
    """Compiled ahead of time for the shape of the example; another shape runs eagerly."""
    made = prepared("make")
    session = open_with("pytorch", build("aot_inductor", made, place / "built", threads=1, **asked), made, place)
    assert error_of(session, made) < (0.03 if asked else 1e-4)
    assert session.run({"input": np.zeros((2, 3, 32, 32), np.float32)})["output"].shape == (2, 10)
    assert session.effective()["has_eager_calls"]


def test_libraries_keep_their_names(place):
    """A file named like a library beside the model is not imported in its place."""
    (place / "json.py").write_text("raise SystemExit('imported from the current directory')")
    (place / "onnx.py").write_text("raise SystemExit('imported from the current directory')")
    assert inspect("py:net:make", trust_code=True).architecture == "Sequential"


def test_module_in_a_package(place):
    """Dotted names; the whole package is the model's source."""
    (place / "kit" / "nets").mkdir(parents=True)
    (place / "kit" / "__init__.py").touch()
    (place / "kit" / "nets" / "small.py").write_text(
        "from torch import nn\nfrom torch import rand\nfrom kit.nets import other\n"
        "def make():\n    return nn.Linear(2, other.N), (rand(1, 2),)\n"
    )
    (place / "kit" / "nets" / "other.py").write_text("N = 3\n")
    before = inspect("py:kit.nets.small:make", trust_code=True)
    assert (before.path, before.n_parameters) == (str(place / "kit" / "nets" / "small.py"), 9)
    (place / "kit" / "nets" / "other.py").write_text("N = 3  # same\n")
    assert inspect("py:kit.nets.small:make", trust_code=True).sha256 != before.sha256


def test_commands_want_trust_again(place, profile_document):
    """A profile that names code: every command that would run it refuses with one line, and none runs it."""
    import json

    (place / "net.py").write_text("open('ran', 'w')")
    document = profile_document(model={"source": "py:net:make", "sha256": "0" * 64, "task": "forward"})
    (place / "p.json").write_text(json.dumps(document))
    for argv in (["check", "p.json"], ["verify", "p.json"], ["bench", "p.json"], ["retune", "p.json"]):
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "tuner", *argv], capture_output=True, text=True, check=False
        )
        assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1), ended.stderr
        assert "give --trust-code" in ended.stderr
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "tuner", "exec", "p.json", "--", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, "give --trust-code" in ended.stderr) == (2, True)
    assert not os.path.exists("ran")  # noqa: PTH110 - in the current directory
