"""Timed batches and fidelity samples."""

import itertools
import json

import numpy as np
import pytest

from tuner.errors import UsageError
from tuner.models.traffic import make_traffic
from tuner.records.model import ModelFacts, TensorSpec
from tuner.records.workload import Workload

IDS = TensorSpec(name="input_ids", dtype="int64", shape=(None, None))
MASK = TensorSpec(name="attention_mask", dtype="int64", shape=(None, None))


@pytest.fixture
def facts(tmp_path, tokenizer_file):
    """Return a model whose directory holds a tokenizer."""
    path = str(tokenizer_file(tmp_path))
    return ModelFacts(source="m", kind="huggingface", path=path, sha256="0", task="feature-extraction", weight_bytes=1)


def traffic_of(facts, specs, data=None, **workload):
    """Make traffic of a workload."""
    asked = Workload(task=facts.task, **workload)
    return make_traffic(facts, asked, specs, asked.lengths, data)


def test_every_length_has_distinct_batches(facts):
    """Eight batches a length, in arrival order, no two alike."""
    traffic = traffic_of(facts, [IDS, MASK], lengths=(8, 12))
    assert [batch["input_ids"].shape for batch in traffic.batches] == [(1, 8), (1, 12)] * 8
    assert len({batch["input_ids"].tobytes() for batch in traffic.batches}) == 16


def test_rows_of_one_batch_are_padded_to_the_longest(facts):
    """Mixed lengths travel together, as they arrive."""
    traffic = traffic_of(facts, [IDS, MASK], lengths=(8, 12), batch_size=2)
    assert traffic.items_per_batch == 2
    assert traffic.batches[0]["attention_mask"].sum(axis=1).tolist() == [8, 12]


def test_many_lengths_are_sampled(facts):
    """A long traffic sample keeps its spread within a bounded number of batches."""
    traffic = traffic_of(facts, [IDS], lengths=tuple(range(3, 1003)))
    lengths = [batch["input_ids"].shape[1] for batch in traffic.batches]
    assert len(lengths) == 64
    assert lengths == sorted(lengths)
    assert max(lengths) > 700


def test_samples_are_other_texts_than_the_timed(facts):
    """Fidelity is judged on rows that were not timed."""
    traffic = traffic_of(facts, [IDS], lengths=(32,))
    timed = {batch["input_ids"].tobytes() for batch in traffic.batches}
    samples = {sample["input_ids"].tobytes() for sample in itertools.islice(traffic.samples, 32)}
    assert len(samples) == 32
    assert not timed & samples


def test_samples_of_data_are_its_rows(facts, tmp_path):
    """The user's texts are judged whole, each once, cut at the longest length."""
    file = tmp_path / "data.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in ("abc", "de", "x" * 50)))
    traffic = traffic_of(facts, [IDS], data=str(file), lengths=(10,))
    assert sorted(sample["input_ids"].shape[1] for sample in traffic.samples) == [4, 5, 10]
    assert traffic.texts == "data"


def test_equal_seeds_give_equal_traffic(facts):
    """Prepared twice, the artifact is the same."""
    one, two = (traffic_of(facts, [IDS, MASK], seed=3) for _ in range(2))
    assert all(np.array_equal(a["input_ids"], b["input_ids"]) for a, b in zip(one.batches, two.batches, strict=True))


def test_graph_with_a_fixed_batch(facts):
    """The graph's own batch size is used, another one refused."""
    fixed = IDS.model_copy(update={"shape": (4, None)})
    assert traffic_of(facts, [fixed]).items_per_batch == 4
    with pytest.raises(UsageError, match="batches of 4 only"):
        traffic_of(facts, [fixed], batch_size=2)


def test_arrays_are_cut_into_batches(facts, tmp_path):
    """Rows in order; a scalar goes with every batch; inputs that are not given are made up."""
    specs = [
        TensorSpec(name="x", dtype="float32", shape=(None, 3)),
        TensorSpec(name="sr", dtype="int64", shape=()),
        TensorSpec(name="mask", dtype="int64", shape=(None, None)),
    ]
    np.savez(tmp_path / "a.npz", x=np.arange(15, dtype=np.float32).reshape(5, 3), sr=np.int64(8000))
    traffic = traffic_of(facts, specs, data=str(tmp_path / "a.npz"), batch_size=2)
    assert [batch["x"][:, 0].tolist() for batch in traffic.batches] == [[0, 3], [6, 9]]
    assert traffic.batches[0]["sr"].shape == ()
    assert traffic.batches[0]["mask"].shape == (2, 3)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": np.zeros((2, 3), np.float32)}, "array 'y', which is no input"),
        ({"x": np.zeros((2, 3))}, "'x' is float64, the graph takes float32"),
        ({"x": np.zeros(2, np.float32)}, "'x' has 1 axes, the graph takes 2"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(facts, tmp_path, arrays, message):
    """Name, dtype and rank are checked."""
    np.savez(tmp_path / "a.npz", **arrays)
    spec = TensorSpec(name="x", dtype="float32", shape=(None, 3))
    with pytest.raises(UsageError, match=message):
        traffic_of(facts, [spec], data=str(tmp_path / "a.npz"))


def test_texts_for_a_graph_without_tokenizer_are_refused(facts, tmp_path):
    """The way out is arrays."""
    (tmp_path / "a.txt").write_text("text\n")
    spec = TensorSpec(name="x", dtype="float32", shape=(None, 3))
    with pytest.raises(UsageError, match=r"no tokenizer\.json beside it: give --data FILE\.npz"):
        traffic_of(facts, [spec], data=str(tmp_path / "a.txt"))
