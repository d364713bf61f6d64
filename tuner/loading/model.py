"""A loaded model as servers use it: numpy in, numpy out, texts to vectors; it opens nothing by itself."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, get_args

import numpy as np

from tuner.backends.base import Batch, Session
from tuner.errors import UsageError
from tuner.models.pooling import pool
from tuner.records.measurement import Effective
from tuner.records.model import ModelFacts
from tuner.records.profile import Profile

if TYPE_CHECKING:
    from tuner.models.tokenizing import TextTokenizer

Aggregate = Literal["mean", "first", "none"]


class Model:
    """A session opened as a profile says.

    Attributes:
        profile: The profile.
        facts: The model.
        effective: Settings in force, read back.
        not_applied: Settings that came too late or are served by the fallback, with the reason, by name.
    """

    def __init__(
        self,
        *,
        profile: Profile,
        facts: ModelFacts,
        session: Session,
        effective: Effective,
        not_applied: dict[str, str],
    ) -> None:
        self.profile = profile
        self.facts = facts
        self.effective = effective
        self.not_applied = not_applied
        self._session = session
        self._tokenizer: TextTokenizer | None = None
        self.run = session.run  # the engine's own call: nothing of ours stands in the timed path

    def encode(
        self,
        texts: Sequence[str],
        *,
        batch_size: int | None = None,
        chunk: int | None = None,
        overlap: int = 0,
        aggregate: Aggregate = "mean",
    ) -> np.ndarray:
        """Turn texts into vectors, the model's own pooling and normalisation applied, order kept.

        Args:
            texts: Any number; an empty list gives a (0, d) array only after a first call with a text.
            batch_size: Rows of one call; default: the batch size of the profile's workload.
            chunk: Longest piece in tokens, special tokens included; None: the model's longest input.
            overlap: Tokens that neighbouring chunks share.
            aggregate: How the vectors of one text's chunks become one: their length-weighted ``mean`` (normalised again
                if the model normalises), the ``first``, or ``none``: the text is cut at `chunk`.

        Returns:
            (len(texts), d) float32.

        Raises:
            UsageError: The model does not give vectors, has no tokenizer, or chunk and overlap do not fit.
        """
        if self.facts.pooling is None:
            raise UsageError(f"encode: the task {self.facts.task} gives no vectors; use run()")
        if isinstance(texts, str):
            raise UsageError("encode takes a list of texts, not one text")
        if batch_size is not None and batch_size < 1:
            raise UsageError(f"encode: batch_size {batch_size} must be at least 1")
        if aggregate not in get_args(Aggregate):
            raise UsageError(f"encode: aggregate {aggregate!r}: choose one of {', '.join(get_args(Aggregate))}")
        rows, owners, weights = self._pieces(texts, chunk, overlap, aggregate)
        if not rows:
            return np.zeros((0, self.facts.hidden_size or 0), np.float32)
        size = batch_size or self.profile.workload.batch_size
        order = sorted(range(len(rows)), key=lambda row: len(rows[row]))  # like lengths together: least padding
        vectors: list[np.ndarray | None] = [None] * len(rows)
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            for row, vector in zip(chosen, self._vectors([rows[row] for row in chosen]), strict=True):
                vectors[row] = vector
        found = np.stack([vector for vector in vectors if vector is not None])
        if len(rows) == len(texts):
            return found
        return self._aggregate(found, owners, weights, len(texts))

    def _pieces(
        self, texts: Sequence[str], chunk: int | None, overlap: int, aggregate: Aggregate
    ) -> tuple[list[list[int]], list[int], list[int]]:
        """Tokenize; return token rows, the text each belongs to and its weight."""
        tokenizer = self._open_tokenizer()
        longest = min(chunk or self.facts.max_length or 2**30, self.facts.max_length or 2**30)
        if chunk is not None and self.facts.max_length is not None and chunk > self.facts.max_length:
            raise UsageError(
                f"encode: chunk {chunk} is above the model's longest input of {self.facts.max_length} tokens"
            )
        room = longest - tokenizer.n_special
        if not 0 <= overlap < room:
            raise UsageError(f"encode: overlap {overlap} must be below the chunk's {room} tokens of text")
        rows: list[list[int]] = []
        owners: list[int] = []
        weights: list[int] = []
        for owner, text in enumerate(texts):
            pieces = tokenizer.chunks(text, longest, overlap) if chunk is not None and aggregate != "none" else None
            if pieces is None or aggregate == "first":
                pieces = [tokenizer.ids(text, longest if longest < 2**30 else None)]
            rows += pieces
            owners += [owner] * len(pieces)
            weights += [max(1, len(piece) - tokenizer.n_special) for piece in pieces]
        return rows, owners, weights

    def _vectors(self, rows: list[list[int]]) -> np.ndarray:
        assert self._tokenizer is not None
        assert self.facts.pooling is not None
        padded = self._tokenizer.pad(rows)
        batch: Batch = {name: padded[name] for name in self._input_names() if name in padded}
        outputs = self._session.run(batch)
        return pool(next(iter(outputs.values())), padded["attention_mask"], self.facts.pooling)

    def _input_names(self) -> Sequence[str]:
        names = getattr(self._session, "input_names", None)
        return tuple(names) if names else ("input_ids", "attention_mask", "token_type_ids")

    def _aggregate(self, vectors: np.ndarray, owners: list[int], weights: list[int], n: int) -> np.ndarray:
        assert self.facts.pooling is not None
        total = np.zeros((n, vectors.shape[1]), np.float32)
        weight = np.zeros((n, 1), np.float32)
        np.add.at(total, owners, vectors * np.asarray(weights, np.float32)[:, None])
        np.add.at(weight, owners, np.asarray(weights, np.float32)[:, None])
        return pool(total / weight, None, self.facts.pooling)

    def _open_tokenizer(self) -> "TextTokenizer":
        if self._tokenizer is None:
            from tuner.models.tokenizing import TextTokenizer

            self._tokenizer = TextTokenizer.open(Path(self.facts.path))
            if self._tokenizer is None:
                raise UsageError(f"encode: no tokenizer.json in or beside {self.facts.path}; use run() with token ids")
        return self._tokenizer

    def close(self) -> None:
        """Give back what the engine holds."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
