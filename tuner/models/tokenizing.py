"""Tokenizes for servers and for preparing inputs, by the tokenizers library alone where there is a tokenizer.json."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from tuner.errors import UsageError
from tuner.models.wording import one_line

if TYPE_CHECKING:
    from tokenizers import Tokenizer

OTHER_FILES = ("tokenizer.model", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model")
"""What a tokenizer can be converted from; without any, the library would make one that knows no word."""
Text = str | tuple[str, str]
"""A text, or two that a cross-encoder reads together."""


class Tokens(NamedTuple):
    """A row: token ids, and for each whether it belongs to the first text (0) or the second (1)."""

    ids: list[int]
    types: list[int]


class TextTokenizer:
    """Turns texts into int64 arrays; padding and truncation are ours, whatever the file says."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        padding = tokenizer.padding
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        self.pad_id = _pad_id(tokenizer, padding)
        self.n_special = int(tokenizer.num_special_tokens_to_add(is_pair=False))
        self.n_special_pair = int(tokenizer.num_special_tokens_to_add(is_pair=True))

    @classmethod
    def open(cls, model: Path) -> Self | None:
        """Open the tokenizer of a model directory, or beside (or above) a model file; None where there is none.

        Raises:
            UsageError: It is damaged.
        """
        places = (model,) if model.is_dir() else (model.parent, model.parent.parent)
        for place in places:
            if (place / "tokenizer.json").is_file():
                return cls(_from_file(place / "tokenizer.json"))
        return cls(_from_transformers(model)) if any((model / name).is_file() for name in OTHER_FILES) else None

    def encode(self, texts: Sequence[Text], max_length: int | None = None) -> dict[str, np.ndarray]:
        """Tokenize and pad to the longest.

        Args:
            texts: At least one.
            max_length: Tokens at which a text is cut, special tokens included; None: nowhere.

        Returns:
            ``input_ids``, ``attention_mask``, ``token_type_ids``, each (texts, longest) int64.
        """
        return self.pad_rows([self.tokens(text, max_length) for text in texts])

    def ids(self, text: str, length: int | None = None) -> list[int]:
        """Return the token ids of one text with its special tokens, at most `length` of them."""
        return self.tokens(text, length).ids

    def tokens(self, text: Text, length: int | None = None) -> Tokens:
        """Return a text or a pair with its special tokens, at most `length` of them; of a pair the longer is cut."""
        one, two = (text, None) if isinstance(text, str) else text
        first = self._tokenizer.encode(one, add_special_tokens=False)
        second = None if two is None else self._tokenizer.encode(two, add_special_tokens=False)
        if length is not None and second is None:
            first.truncate(max(0, length - self.n_special))
        elif length is not None and second is not None:
            room = max(0, length - self.n_special_pair)
            sizes = len(first.ids), len(second.ids)
            kept = min(sizes[0], max(room - sizes[1], (room + 1) // 2))
            first.truncate(kept)
            second.truncate(room - kept)
        whole = self._tokenizer.post_process(first, second, add_special_tokens=True)
        return Tokens(list(whole.ids), list(whole.type_ids))

    def chunks(self, text: str, length: int, overlap: int) -> list[list[int]]:
        """Return the token ids of `text` in pieces of at most `length` (special tokens included), at least one piece.

        Neighbouring pieces share `overlap` tokens of text.
        """
        ids = list(self._tokenizer.encode(text, add_special_tokens=False).ids)
        room = length - self.n_special
        starts = range(0, max(1, len(ids) - overlap), room - overlap)
        return [self._with_special(text, ids, start, start + room) for start in starts]

    def _with_special(self, text: str, ids: list[int], start: int, end: int) -> list[int]:
        """Return the special tokens around a slice of a text's ids, wherever the tokenizer puts them."""
        whole = list(self._tokenizer.encode(text, add_special_tokens=True).ids)
        first = next((n for n in range(len(whole) - len(ids) + 1) if whole[n : n + len(ids)] == ids), 0)
        return [*whole[:first], *ids[start:end], *whole[first + len(ids) :]]

    def pad(self, rows: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
        """Pad rows of ids on the right to the longest; see `encode` for the result."""
        longest = max(1, *(len(row) for row in rows)) if rows else 1
        ids = np.full((len(rows), longest), self.pad_id, np.int64)
        mask = np.zeros_like(ids)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = row
            mask[index, : len(row)] = 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}

    def pad_rows(self, rows: Sequence[Tokens]) -> dict[str, np.ndarray]:
        """Pad rows on the right to the longest, types too; see `encode` for the result."""
        arrays = self.pad([row.ids for row in rows])
        for index, row in enumerate(rows):
            arrays["token_type_ids"][index, : len(row.types)] = row.types
        return arrays

    def count(self, text: str) -> int:
        """Return the number of tokens of `text` without special tokens."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def unknown_ratio(self, text: str) -> float:
        """Return the share of tokens of `text` that the vocabulary does not know (0 where it has no unknown token)."""
        tokens = self._tokenizer.encode(text, add_special_tokens=False).tokens
        unknown = getattr(self._tokenizer.model, "unk_token", None)
        return sum(token == unknown for token in tokens) / max(1, len(tokens)) if unknown else 0.0


def _pad_id(tokenizer: "Tokenizer", padding: dict[str, object] | None) -> int:
    if padding:
        pad_id = padding["pad_id"]
        return pad_id if isinstance(pad_id, int) else 0
    found = (tokenizer.token_to_id(token) for token in ("[PAD]", "<pad>", "<|endoftext|>"))
    return next((token_id for token_id in found if token_id is not None), 0)


def _from_file(file: Path) -> "Tokenizer":
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # noqa: BLE001 - the library raises bare Exception
        raise UsageError(f"{file} cannot be read: {one_line(error)}: download it again") from None


def _from_transformers(model: Path) -> "Tokenizer":
    """Convert a tokenizer that has no tokenizer.json; imports transformers, so only in a worker that prepares."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(model), local_files_only=True)
    except Exception as error:  # noqa: BLE001 - whatever it raises, the cause is the model's files
        raise UsageError(f"no tokenizer can be opened in {model}: {one_line(error)}: add its tokenizer.json") from None
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise UsageError(f"the tokenizer in {model} has no fast form: add its tokenizer.json")
    backend: Tokenizer = tokenizer.backend_tokenizer
    return backend
