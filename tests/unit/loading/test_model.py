"""Texts to vectors over a session whose vectors are a table: order, batches, chunks, pooling."""

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from tuner.errors import UsageError
from tuner.loading.model import Model
from tuner.records.measurement import Effective
from tuner.records.model import ModelFacts, Pooling

WORDS = ["[PAD]", "[CLS]", "[SEP]", *"abcdefgh"]
TABLE = np.random.default_rng(0).normal(size=(len(WORDS), 4)).astype(np.float32)


class TableSession:
    """Answers each token's row of TABLE, and notes the shapes it was called with."""

    input_names = ("input_ids", "attention_mask")

    def __init__(self):
        self.calls = []
        self.is_closed = False

    def run(self, batch):
        """Look the tokens up."""
        assert set(batch) == set(self.input_names)
        self.calls.append(batch["input_ids"].shape)
        return {"last_hidden_state": TABLE[batch["input_ids"]]}

    def effective(self):
        """Nothing is in force."""
        return {}

    def close(self):
        """Note it."""
        self.is_closed = True


@pytest.fixture
def make_model(tmp_path, profile):
    """Return a function that makes a model; keyword arguments replace its facts."""
    vocabulary = {word: index for index, word in enumerate(WORDS)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[PAD]"))  # noqa: S106 - a token of text
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))

    def make(*, batch_size=1, **changes):
        facts = {
            "source": "m",
            "kind": "huggingface",
            "path": str(tmp_path),
            "sha256": "0" * 64,
            "task": "feature-extraction",
            "weight_bytes": 0,
            "hidden_size": 4,
            "max_length": 6,
            "pooling": Pooling(normalize=False),
        }
        made = profile(workload={"task": "feature-extraction", "batch_size": batch_size})
        return Model(
            profile=made,
            facts=ModelFacts(**{**facts, **changes}),
            session=TableSession(),
            effective=Effective(),
            not_applied={},
        )

    return make


def mean_of(words, *, normalize=False):
    """Return the masked mean of a text's tokens, special ones included."""
    vector = TABLE[[1, *(WORDS.index(word) for word in words.split()), 2]].mean(axis=0)
    return vector / np.linalg.norm(vector) if normalize else vector


def calls(model):
    """Return the shapes of the session's calls."""
    return model.run.__self__.calls


def test_vectors_are_the_models_own(make_model):
    """A text's vector is the mean of its tokens, float32."""
    found = make_model().encode(["a b"])
    assert (found.dtype, np.allclose(found, [mean_of("a b")], atol=1e-6)) == (np.float32, True)


def test_normalised_where_the_model_is(make_model):
    """A model that normalises gives vectors of length one."""
    found = make_model(pooling=Pooling(normalize=True)).encode(["a b c"])
    assert np.allclose(found, [mean_of("a b c", normalize=True)], atol=1e-6)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 64])
def test_order_is_kept(make_model, batch_size):
    """Texts of mixed lengths come back in the order they were given, padding without effect (case C47)."""
    texts = ["a b c d", "e", "", "f g", "a", "h h h"]
    found = make_model().encode(texts, batch_size=batch_size)
    assert np.allclose(found, [mean_of(text) for text in texts], atol=1e-6)


def test_like_lengths_go_together(make_model):
    """Rows of a batch are of like length: the least padding."""
    model = make_model(batch_size=2)
    model.encode(["a b c d", "e", "a b c", "f"])
    assert calls(model) == [(2, 3), (2, 6)]


def test_batch_size_of_the_profile(make_model):
    """Without a batch size, that of the traffic that was tuned for."""
    model = make_model(batch_size=3)
    model.encode(["a"] * 7)
    assert [shape[0] for shape in calls(model)] == [3, 3, 1]


def test_long_text_is_cut(make_model):
    """Without chunks, a text is cut at the model's longest input."""
    assert np.allclose(make_model().encode(["a b c d e f g h"]), [mean_of("a b c d")], atol=1e-6)


def test_chunks_are_averaged_by_length(make_model):
    """With chunks, all of a text counts: the mean of its chunks, weighted by their tokens."""
    found = make_model().encode(["a b c d e"], chunk=4)
    expected = (2 * mean_of("a b") + 2 * mean_of("c d") + mean_of("e")) / 5
    assert np.allclose(found, [expected], atol=1e-6)


def test_chunks_overlap(make_model):
    """Neighbouring chunks share the tokens asked for."""
    found = make_model().encode(["a b c"], chunk=4, overlap=1)
    assert np.allclose(found, [(mean_of("a b") + mean_of("b c")) / 2], atol=1e-6)


def test_chunked_and_short_texts_keep_their_order(make_model):
    """Long and short texts mixed come back in order."""
    found = make_model().encode(["h", "a b c d", "g"], chunk=4)
    expected = [mean_of("h"), (mean_of("a b") + mean_of("c d")) / 2, mean_of("g")]
    assert np.allclose(found, expected, atol=1e-6)


def test_short_texts_are_the_same_with_chunks(make_model):
    """A text within one chunk has the vector it has without chunks."""
    assert np.allclose(make_model().encode(["a b"], chunk=6), make_model().encode(["a b"]), atol=1e-6)


def test_chunks_of_a_normalising_model(make_model):
    """The mean of unit vectors is made a unit vector again."""
    found = make_model(pooling=Pooling(normalize=True)).encode(["a b c d"], chunk=4)
    mean = (mean_of("a b", normalize=True) + mean_of("c d", normalize=True)) / 2
    assert np.allclose(found, [mean / np.linalg.norm(mean)], atol=1e-6)


@pytest.mark.parametrize("aggregate", ["first", "none"])
def test_only_the_first_chunk(make_model, aggregate):
    """``first`` and ``none`` take a text's first chunk."""
    found = make_model().encode(["a b c d e"], chunk=4, aggregate=aggregate)
    assert np.allclose(found, [mean_of("a b")], atol=1e-6)


def test_no_texts(make_model):
    """No texts give no rows of the model's width."""
    assert make_model().encode([]).shape == (0, 4)


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"chunk": 7}, "above the model's longest input of 6 tokens"),
        ({"chunk": 2}, "overlap 0 must be below the chunk's 0 tokens"),
        ({"chunk": 4, "overlap": 2}, "overlap 2 must be below the chunk's 2 tokens"),
        ({"chunk": 4, "overlap": -1}, "overlap -1"),
        ({"batch_size": 0}, "batch_size 0"),
        ({"aggregate": "max"}, "aggregate 'max'"),
    ],
)
def test_what_does_not_fit(make_model, options, pattern):
    """Chunks, overlaps and batches that cannot work are refused."""
    with pytest.raises(UsageError, match=pattern):
        make_model().encode(["a b c"], **options)


def test_one_text_is_no_list(make_model):
    """A bare text would be taken for a list of letters."""
    with pytest.raises(UsageError, match="a list of texts"):
        make_model().encode("a b")


def test_model_without_vectors(make_model):
    """A classifier gives no vectors."""
    with pytest.raises(UsageError, match=r"use run\(\)"):
        make_model(task="text-classification", pooling=None).encode(["a"])


def test_model_without_tokenizer(make_model, tmp_path):
    """Without a tokenizer, only token ids can be run."""
    model = make_model()
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(UsageError, match=r"no tokenizer\.json"):
        model.encode(["a"])


def test_with_closes(make_model):
    """Leaving the block gives the engine back."""
    with make_model() as model:
        session = model.run.__self__
    assert session.is_closed
