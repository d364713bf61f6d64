"""Texts cut to exact token lengths."""

import itertools

import pytest

from tuner.errors import UsageError
from tuner.models.sampling import Composer, builtin_pools, builtin_sentences
from tuner.models.tokenizing import TextTokenizer


@pytest.fixture
def tokenizer(tmp_path, tokenizer_file):
    """Return a tokenizer of one token a letter whose file asks for padding and truncation."""
    return TextTokenizer.open(tokenizer_file(tmp_path))


@pytest.mark.parametrize("length", [2, 3, 16, 128, 3000])
def test_rows_have_the_asked_length(tokenizer, length):
    """Special tokens are counted; texts repeat when they run out."""
    row = Composer(tokenizer, [["a short one.", "and another."]], 0).row(length)
    assert len(row) == length
    assert (row[0], row[-1]) == (2, 3)


def test_rows_differ(tokenizer):
    """Samples start at different sentences, whatever divides their number."""
    composer = Composer(tokenizer, [builtin_sentences("english")], 0)
    rows = {tuple(composer.row(64)) for _ in range(256)}
    assert len(rows) == 256


def test_pools_take_turns(tokenizer):
    """Half of the rows come from each pool."""
    composer = Composer(tokenizer, [["aaaa"], ["bbbb"]], 0)
    firsts = [composer.row(4)[1] for _ in range(4)]
    assert firsts[0] == firsts[2] != firsts[1] == firsts[3]


def test_chinese_is_left_out_where_the_vocabulary_lacks_it(tokenizer):
    """Rows of unknown tokens would not be natural text."""
    pools, name = builtin_pools(tokenizer)
    assert (len(pools), name) == (1, "builtin en")


def test_texts_without_tokens_are_refused(tokenizer):
    """Nothing to tokenize does not run for ever."""
    with pytest.raises(UsageError, match="too few tokens"):
        Composer(tokenizer, [["", ""]], 0).row(8)


def test_texts_of_one_token_are_enough(tokenizer):
    """As many as it takes."""
    assert len(Composer(tokenizer, [["a", "b"]], 0).row(40)) == 40


@pytest.mark.parametrize(("language", "least_bytes"), [("english", 25_000), ("chinese", 10_000)])
def test_builtin_texts_are_ample(language, least_bytes):
    """Enough text that a fidelity set does not repeat itself, no sentence twice."""
    sentences = builtin_sentences(language)
    assert sum(len(sentence.encode()) for sentence in sentences) >= least_bytes
    assert not [a for a, b in itertools.pairwise(sorted(sentences)) if a == b]


def test_encode_pads_to_the_longest_and_cuts(tokenizer):
    """Padding and truncation of the file are replaced by ours."""
    arrays = tokenizer.encode(["abcdefgh", "a"], max_length=5)
    assert arrays["input_ids"].tolist() == [[2, 4, 5, 6, 3], [2, 4, 3, 0, 0]]
    assert arrays["attention_mask"].tolist() == [[1] * 5, [1, 1, 1, 0, 0]]
    assert {array.dtype.name for array in arrays.values()} == {"int64"}


def test_tokenizer_above_a_graph_is_found(tmp_path, tokenizer_file):
    """An .onnx in a directory below the tokenizer's uses it; a graph without one has none."""
    tokenizer_file(tmp_path)
    assert TextTokenizer.open(tmp_path / "onnx" / "model.onnx") is not None
    assert TextTokenizer.open(tmp_path / "a" / "b" / "c" / "model.onnx") is None


def test_damaged_tokenizer_is_named(tmp_path):
    """One line, with the file."""
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UsageError, match=r"tokenizer\.json cannot be read"):
        TextTokenizer.open(tmp_path)


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [("aaaa", "bb", (4, 2)), ("aaaaaaaaa", "bb", (6, 2)), ("aa", "bbbbbbbbb", (2, 6)), ("a" * 9, "b" * 9, (4, 4))],
)
def test_of_a_pair_the_longer_is_cut(tokenizer, first, second, kept):
    """Both share what room there is; the tokenizer here marks no second text and adds two special tokens to each."""
    row = tokenizer.tokens((first, second), 8 + tokenizer.n_special_pair)
    assert (row.ids.count(4), row.ids.count(5)) == kept
    assert len(row.types) == len(row.ids)


def test_pairs_have_the_asked_length(tokenizer):
    """Each first text comes with its own second one, which goes on with the next until the row is full."""
    composer = Composer(tokenizer, [["cc", "dd", "ee"]], 0, ["a", "b", "f" * 30])
    rows = [composer.tokens(16).ids for _ in range(3)]
    assert {len(row) for row in rows} == {16}
    letters = {frozenset(row[1:3]) for row in rows}
    assert len(letters) == 3
