"""Composes texts of exact token lengths by sliding over sentences; where the sentences come from it does not decide."""

from collections.abc import Iterator, Sequence
from importlib.resources import files

from tuner.errors import UsageError
from tuner.models.tokenizing import TextTokenizer, Tokens

LARGEST_UNKNOWN_RATIO = 0.5
LAST_NARROW = "\u2e7f"
MOST_SENTENCES_A_TOKEN = 2
STRIDES = (7, 11, 13, 17, 1)
"""Sentences between the starts of samples: the first that does not divide the pool, so that starts repeat late."""


def builtin_sentences(language: str) -> list[str]:
    """Return the built-in sentences, ``english`` or ``chinese``."""
    text = (files("tuner.models") / "texts" / f"{language}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line]


def builtin_pools(tokenizer: TextTokenizer) -> tuple[list[list[str]], str]:
    """Return the pools of sentences to draw from in turn, and their name.

    English and Chinese, or English alone where the vocabulary does not know most of the Chinese.
    """
    english, chinese = builtin_sentences("english"), builtin_sentences("chinese")
    if tokenizer.unknown_ratio("".join(chinese)) > LARGEST_UNKNOWN_RATIO:
        return [english], "builtin en"
    return [english, chinese], "builtin en zh"


class Composer:
    """Yields rows of exact lengths, pool after pool, each time starting at another sentence.

    Args:
        tokenizer: Of the model.
        pools: Sentences to draw from in turn.
        seed: Where the first row starts.
        firsts: Of a cross-encoder: the first text of the pair whose second text has this place in its pool.
    """

    def __init__(
        self, tokenizer: TextTokenizer, pools: Sequence[Sequence[str]], seed: int, firsts: Sequence[str] = ()
    ) -> None:
        self._firsts = firsts
        self._tokenizer = tokenizer
        self._pools = pools
        self._drawn = 0
        self._seed = seed

    def row(self, length: int) -> list[int]:
        """Return the ids of the next row: `length`, special tokens included."""
        return self.tokens(length).ids

    def tokens(self, length: int) -> Tokens:
        """Return the next row of `length` tokens, special tokens included."""
        pool = self._pools[self._drawn % len(self._pools)]
        stride = next((step for step in STRIDES if len(pool) % step), 1)
        start = (self._drawn // len(self._pools)) * stride + self._seed
        self._drawn += 1
        first = self._firsts[start % len(self._firsts)] if self._firsts else None
        enough = length - self._tokenizer.n_special
        if first is not None:
            enough = length - self._tokenizer.n_special_pair - self._tokenizer.count(first)
        taken: list[str] = []
        n_tokens = 0
        for sentence in _around(pool, start):
            taken.append(sentence)
            n_tokens += self._tokenizer.count(sentence)
            if n_tokens >= enough:
                text = _joint(sentence).join(taken)
                row = self._tokenizer.tokens(text if first is None else (first, text), length)
                if len(row.ids) == length:
                    return row
            if len(taken) > MOST_SENTENCES_A_TOKEN * length + len(pool):
                break
        raise UsageError("the texts hold too few tokens of the model's vocabulary: give other --data")


def _joint(sentence: str) -> str:
    """Return what stands between sentences: a space, nothing after a full-width stop."""
    return "" if sentence[-1:] > LAST_NARROW else " "


def _around(pool: Sequence[str], start: int) -> Iterator[str]:
    """Yield the sentences of `pool` from `start` on, again and again."""
    index = start
    while True:
        yield pool[index % len(pool)]
        index += 1
