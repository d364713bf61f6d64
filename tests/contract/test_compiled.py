"""PyTorch compiled ahead of time, and while it runs, on the tiny model."""

import os

import numpy as np
import pytest

from tuner.backends.base import Context, Unsupported
from tuner.plugins import plugin
from tuner.records.package import Package, PackagedShape


@pytest.fixture(scope="module")
def package(tiny_bert, tmp_path_factory):
    """Return the directory of a static package of the traffic's two shapes."""
    directory = tmp_path_factory.mktemp("package")
    step = plugin("tuner.steps", "aot_inductor")
    settings = step.Settings(threads=1)
    step.build({"source": tiny_bert.directory, "prepared": tiny_bert.prepared}, settings, directory)
    return directory


@pytest.fixture
def context(tiny_bert, tmp_path):
    """Return the context of the tiny model."""
    return Context(model=tiny_bert.facts, workload=tiny_bert.workload, cache_dir=str(tmp_path))


@pytest.fixture
def session(package, context):
    """Return the open package."""
    backend = plugin("tuner.backends", "pytorch")
    return backend.open(package, backend.SessionSettings(threads=1), context)


@pytest.mark.slow
def test_package_answers_what_the_model_answers(session, tiny_bert):
    """Every compared sample, on shapes that were compiled."""
    for sample, reference in tiny_bert.compared():
        answer = session.run(sample)
        np.testing.assert_allclose(answer["last_hidden_state"], reference["last_hidden_state"], atol=2e-4)
    assert session.effective()["n_padded_calls"] == 0


@pytest.mark.slow
def test_smaller_batch_is_padded(session, tiny_bert):
    """A length between two compiled ones is padded, masked and cut again."""
    sample, reference = next(pair for pair in tiny_bert.compared() if pair[0]["input_ids"].shape[1] > 30)
    eager = plugin("tuner.backends", "pytorch")
    cut = {name: array[:, :23] for name, array in sample.items()}
    context = Context(model=tiny_bert.facts, workload=tiny_bert.workload, cache_dir="unused")
    expected = eager.open(tiny_bert.directory, eager.SessionSettings(), context).run(cut)["last_hidden_state"]
    answer = session.run(cut)["last_hidden_state"]
    assert answer.shape == expected.shape != reference["last_hidden_state"].shape
    np.testing.assert_allclose(answer, expected, atol=2e-4)
    assert session.effective()["n_padded_calls"] == 1


@pytest.mark.slow
def test_larger_batch_runs_eagerly(session):
    """What no compiled graph holds is answered all the same, and said."""
    ids = np.full((3, 50), 7, np.int64)
    batch = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    assert not session.effective()["has_eager_calls"]
    assert session.run(batch)["last_hidden_state"].shape == (3, 50, 32)
    assert session.effective()["has_eager_calls"]


@pytest.mark.slow
def test_package_says_how_it_was_made(package):
    """Only the packages and their description are left of the build."""
    assert sorted(file.name for file in package.iterdir()) == ["0.pt2", "1.pt2", "package.json"]
    found = Package.from_json((package / "package.json").read_bytes())
    assert [shape.shapes for shape in found.shapes] == [((1, 16),) * 3, ((1, 40),) * 3]
    assert (found.threads, found.precision, found.long_outputs) == (1, "float32", ("last_hidden_state",))


def test_damaged_package_is_unsupported(context, tmp_path):
    """A package that cannot be loaded says so in one line."""
    package = Package(
        inputs=("input_ids",),
        outputs=("y",),
        long_outputs=(),
        precision="float32",
        threads=1,
        shapes=(PackagedShape(file="0.pt2", shapes=((1, 8),)),),
    )
    (tmp_path / "package.json").write_text(package.to_json())
    (tmp_path / "0.pt2").write_bytes(b"no archive")
    backend = plugin("tuner.backends", "pytorch")
    with pytest.raises(Unsupported, match=r"cannot load 0\.pt2"):
        backend.open(tmp_path, backend.SessionSettings(), context)


@pytest.mark.parametrize("what", ["step", "session"])
def test_missing_compiler_is_named(tiny_bert, context, tmp_path, monkeypatch, what):
    """Without a compiler nothing is traced first."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    backend, step = plugin("tuner.backends", "pytorch"), plugin("tuner.steps", "aot_inductor")
    inputs = {"source": tiny_bert.directory, "prepared": tiny_bert.prepared}
    start = {
        "step": lambda: step.build(inputs, step.Settings(), tmp_path),
        "session": lambda: backend.open(tiny_bert.directory, backend.SessionSettings(compile="default"), context),
    }[what]
    with pytest.raises(Unsupported, match=r"needs a C\+\+ compiler: install g\+\+"):
        start()


@pytest.mark.slow
def test_compiling_while_running_is_counted(tiny_bert, context, monkeypatch):
    """Seconds, graphs and recompiles are read back; how it compiled cannot be, and is listed."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", os.path.join(context.cache_dir, "inductor"))  # noqa: PTH118
    backend = plugin("tuner.backends", "pytorch")
    settings = backend.SessionSettings(threads=1, compile="default", freezing=True, dynamic_shapes=True)
    session = backend.open(tiny_bert.directory, settings, context)
    sample, reference = tiny_bert.compared()[0]
    answer = session.run(sample)
    np.testing.assert_allclose(answer["last_hidden_state"], reference["last_hidden_state"], atol=2e-4)
    effective = session.effective()
    assert effective["compile_s"] > 0
    assert effective["n_graphs"] >= 1
    assert effective["unverified"] == ["compile", "freezing", "dynamic_shapes"]


@pytest.mark.parametrize(
    ("asked", "is_compiled"), [({}, False), ({"compile": "off"}, False), ({"compile": "default"}, True)]
)
def test_compiled_sessions_warm_up_longer(asked, is_compiled):
    """The backend says which settings compile in the first calls."""
    assert plugin("tuner.backends", "pytorch").compiled(asked) is is_compiled
