"""Outputs of a session against the stored reference."""

import numpy as np
import pytest

from tuner.measure.fidelity import Incorrect
from tuner.messages import CheckFidelity
from tuner.models.judging import judge, main_output
from tuner.records.model import ModelFacts, Pooling, Prepared, TensorSpec
from tuner.records.workload import Workload

N, LENGTH, WIDTH = 20, 3, 4


def session(batch):
    """Answer token vectors that depend on the ids, and logits."""
    tokens = np.sin(batch["ids"][..., None] * np.arange(1, WIDTH + 1)).astype(np.float32)
    return {"tokens": tokens, "logits": tokens[:, 0]}


@pytest.fixture
def prepared(tmp_path):
    """Return a function that writes a prepared workload judged by `method`."""

    def write(method):
        random = np.random.default_rng(0)
        samples = [{"ids": random.integers(1, 99, (1, LENGTH)), "mask": np.array([[1, 1, 0]])} for _ in range(N)]
        outputs = {"embedding": ("tokens",), "classes": ("logits",), "graph": ("tokens", "logits")}[method]
        kept = {f"{i}.{name}": session(sample)[name] for i, sample in enumerate(samples) for name in outputs}
        if method == "embedding":
            vectors = np.stack([session(sample)["tokens"][:, :2].mean(axis=1) for sample in samples])
            kept = {key: value for key, value in kept.items() if int(key.split(".")[0]) < 16} | {"vectors": vectors}
        np.savez(tmp_path / "references.npz", **kept)
        np.savez(tmp_path / "samples.npz", **{f"{i}.{k}": v for i, s in enumerate(samples) for k, v in s.items()})
        facts = ModelFacts(
            source="m",
            kind="onnx",
            path="/m",
            sha256="0",
            task="forward",
            weight_bytes=1,
            pooling=Pooling(normalize=False),
        )
        return tmp_path, Prepared(
            model=facts,
            workload=Workload(task="forward"),
            inputs=(TensorSpec(name="ids", dtype="int64", shape=(None, None)),),
            outputs=outputs,
            n_batches=1,
            n_samples=N,
            items_per_batch=1,
            method=method,
            reference="test",
        )

    return write


ALL = CheckFidelity(max_samples=N)
METHODS = ["embedding", "classes", "graph"]


@pytest.mark.parametrize("method", METHODS)
def test_equal_outputs_are_perfect(prepared, method):
    """The reference itself passes, all samples compared."""
    done = judge(*prepared(method), session, ALL)
    figures = done.fidelity
    assert (figures.n, figures.method, done.stopped_early) == (N, method, False)
    assert figures.abs_error_max == pytest.approx(0, abs=1e-6)


def test_padding_is_not_judged(prepared):
    """Embeddings are pooled by the mask; what stands in padding does not matter."""

    def with_rubbish(batch):
        answer = session(batch)
        answer["tokens"][:, 2] = 1e6
        return answer

    figures = judge(*prepared("embedding"), with_rubbish, ALL).fidelity
    assert figures.cosine_min == pytest.approx(1)
    assert figures.details["token_cosine_min"] == pytest.approx(1)


@pytest.mark.parametrize("method", METHODS)
def test_hopeless_outputs_stop_after_the_quick_look(prepared, method):
    """Opposite outputs are refused on the first samples."""

    def opposite(batch):
        return {name: -array for name, array in session(batch).items()}

    done = judge(*prepared(method), opposite, CheckFidelity(max_samples=N, quick_samples=8))
    assert (done.stopped_early, done.fidelity.n) == (True, 8)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: {},
        lambda answer: {name: array * np.nan for name, array in answer.items()},
        lambda answer: {name: array[:, :1] for name, array in answer.items()},
    ],
)
def test_impossible_outputs_are_incorrect(prepared, method, spoil):
    """Missing, not finite or of another shape is no question of tolerance."""
    with pytest.raises(Incorrect):
        judge(*prepared(method), lambda batch: spoil(session(batch)), ALL)


def test_outputs_are_copied(prepared):
    """An engine may answer the same memory again and again."""
    memory = {}

    def reusing(batch):
        for name, array in session(batch).items():
            memory.setdefault(name, np.empty_like(array))[...] = array
        return memory

    assert judge(*prepared("graph"), reusing, ALL).fidelity.abs_error_max == 0


def test_main_output_goes_by_name_then_rank():
    """The usual name, else token vectors before pooled ones."""
    answer = {"pooled": np.zeros((1, 4)), "states": np.zeros((1, 3, 4)), "all": np.zeros((2, 1, 3, 4))}
    assert main_output(tuple(answer), answer, "embedding") == "states"
    assert main_output(("a", "logits"), {}, "classes") == "logits"
