"""Turns the points of a space into a table of codes, with groups of points that share an artifact or their outputs.

It knows no measurement. Code 0 of a column means that the parameter is not active.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tuner.space.domains import Domain
from tuner.space.parameters import Value
from tuner.space.resolved import ResolvedSpace
from tuner.space.walking import Point

__all__ = ["Column", "PointTable"]

BACKEND = "backend"
CHAIN = "artifact.chain"
_LOG_SPAN = 4.0
STRONG, MODERATE, WEAK = 0.25, 0.10, 0.04
MODERATE_WORDS = ("allocator", "openmp_runtime", "attention", "spinning")
"""What has moved models by a tenth: pages for large activations, another thread pool, fused attention, polling."""
Codes = np.ndarray


@dataclass(frozen=True)
class Column:
    """One parameter over all backends that have it.

    Attributes:
        values: Value of code 1, 2, …; numbers in rising order.
        places: Place of every code on a line from 0 to 1 (logarithms where the values span a factor of 4); None for
            categories, where all differ alike.
        expected: Standard deviation of its own effect (log-ratio) that is expected before anything is measured.
    """

    name: str
    values: tuple[Value, ...]
    places: np.ndarray | None
    expected: float

    @property
    def n_codes(self) -> int:
        """Number of codes, the one for "not active" included."""
        return len(self.values) + 1

    def likeness(self, length: float) -> np.ndarray:
        """Return the positive semi-definite matrix (codes by codes) of likeness in 0..1, 1 on the diagonal.

        Numbers: Matérn 3/2 on their places; categories, and active against not active: 0.
        """
        found = np.eye(self.n_codes)
        if self.places is not None:
            gap = np.sqrt(3.0) * np.abs(self.places[:, None] - self.places[None, :]) / length
            found[1:, 1:] = ((1 + gap) * np.exp(-gap))[1:, 1:]
        return found


class PointTable:
    """Points as rows of codes.

    Args:
        space: Says which parameters belong to the artifact and which change outputs.
        points: The rows, each once.
    """

    def __init__(self, space: ResolvedSpace, points: Sequence[Point]) -> None:
        self.space = space
        self.points: list[Point] = []
        self.columns = tuple(_columns(space))
        self._code_of = [{_spelled(value): code for code, value in enumerate(c.values, 1)} for c in self.columns]
        self._numerics = [self._position(names) for names in _names(space, numerics=True)]
        self._artifact = [self._position(names) for names in _names(space, numerics=False)]
        self.codes: Codes = np.zeros((0, len(self.columns)), dtype=np.int16)
        self._rows: dict[bytes, int] = {}
        self._groups: dict[tuple[str, bytes], int] = {}
        self.artifacts = self.cells = self.numerics = np.zeros(0, dtype=np.int64)
        self.extend(points)

    def __len__(self) -> int:
        return len(self.points)

    def extend(self, points: Iterable[Point]) -> list[int]:
        """Add points that are not there yet and return the rows of all of `points`."""
        rows, fresh = [], []
        for point in points:
            codes = self.encode(point)
            row = self._rows.setdefault(codes.tobytes(), len(self._rows))
            rows.append(row)
            if row == len(self.points):
                self.points.append(dict(point))
                fresh.append(codes)
        if fresh:
            added = np.array(fresh, dtype=np.int16)
            self.codes = np.concatenate([self.codes, added])
            self.artifacts = np.concatenate([self.artifacts, self._grouped("artifact", added)])
            self.cells = np.concatenate([self.cells, self._grouped("cell", added)])
            self.numerics = np.concatenate([self.numerics, self._grouped("numerics", added)])
            self.__dict__.pop("one_hot", None)
        return rows

    def encode(self, point: Mapping[str, Value]) -> Codes:
        """Return the codes of a point; a value that the space does not have counts as not active."""
        found = [
            known.get(_spelled(point[column.name]), 0) if column.name in point else 0
            for column, known in zip(self.columns, self._code_of, strict=True)
        ]
        return np.array(found, dtype=np.int16)

    def row_of(self, point: Mapping[str, Value]) -> int | None:
        """Return the row of a point, None if it is not in the table."""
        return self._rows.get(self.encode(point).tobytes())

    @cached_property
    def one_hot(self) -> np.ndarray:
        """The codes as zeros and ones (rows by codes of all columns)."""
        found = np.zeros((len(self.points), self.offsets[-1]))
        rows = np.arange(len(self.points))
        for position, offset in enumerate(self.offsets[:-1]):
            found[rows, offset + self.codes[:, position]] = 1.0
        return found

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where the codes of each column begin in `one_hot`, and its width."""
        return tuple(np.cumsum([0, *(column.n_codes for column in self.columns)]).tolist())

    @cached_property
    def numerics_columns(self) -> np.ndarray:
        """Positions of the columns that can change outputs in some backend."""
        return np.array(sorted({place for group in self._numerics for place in group}), dtype=np.int64)

    @property
    def n_dims(self) -> int:
        """Number of columns in which rows differ."""
        return int(np.count_nonzero(np.ptp(self.codes, axis=0))) if len(self.points) else 0

    def _position(self, names: set[str]) -> list[int]:
        return [place for place, column in enumerate(self.columns) if column.name in names]

    def _grouped(self, kind: str, codes: Codes) -> np.ndarray:
        """Return a number per row, equal for rows that share what `kind` says."""
        found = np.zeros(len(codes), dtype=np.int64)
        backends = codes[:, [column.name for column in self.columns].index(BACKEND)]
        for code in np.unique(backends):
            number = int(code) - 1
            artifact, numerics = self._artifact[number], self._numerics[number]
            places = {
                "artifact": artifact,
                "numerics": numerics,
                "cell": [place for place in numerics if place in artifact or self._is_precision(place)],
            }[kind]
            rows = np.flatnonzero(backends == code)
            different, inverse = np.unique(codes[rows][:, places], axis=0, return_inverse=True)
            keys = [(kind, values.tobytes() + bytes([number])) for values in different]
            groups = np.array([self._groups.setdefault(key, len(self._groups)) for key in keys])
            found[rows] = groups[inverse.reshape(-1)]
        return found

    def _is_precision(self, place: int) -> bool:
        return self.columns[place].name.endswith("precision")


def _columns(space: ResolvedSpace) -> Iterable[Column]:
    """Yield the columns: the backend, then every parameter with the values it has in any backend."""
    yield Column(BACKEND, tuple(space.backends), None, STRONG)
    found: dict[str, tuple[list[Domain], bool]] = {}
    for backend in space.backends.values():
        for parameter in backend.parameters:
            domains, is_numerics = found.get(parameter.name, ([], False))
            found[parameter.name] = ([*domains, parameter.domain], is_numerics or parameter.numerics)
    for name, (domains, is_numerics) in found.items():
        values = list({_spelled(value): value for domain in domains for value in domain.values}.values())
        is_number = all(domain.kind != "choice" for domain in domains)
        if is_number:
            values.sort(key=float)
        yield Column(
            name, tuple(values), _places(values) if is_number else None, _expected(name, is_numerics=is_numerics)
        )


def _expected(name: str, *, is_numerics: bool) -> float:
    """Return the effect expected of a parameter: most where it decides which kernels run or on how many threads."""
    if name == CHAIN or (is_numerics and name.endswith("precision")) or "threads" in name:
        return STRONG
    return MODERATE if any(word in name for word in MODERATE_WORDS) else WEAK


def _places(values: Sequence[Value]) -> np.ndarray:
    numbers = np.array([float(value) for value in values]) if values else np.zeros(1)
    if numbers[0] > 0 and numbers[-1] / numbers[0] >= _LOG_SPAN:
        numbers = np.log(numbers)
    span = float(numbers[-1] - numbers[0])
    line = (numbers - numbers[0]) / span if span else np.zeros(len(numbers))
    return np.concatenate([[0.0], line])


def _names(space: ResolvedSpace, *, numerics: bool) -> Iterable[set[str]]:
    """Yield, backend by backend, the parameters of the artifact, with `numerics` also those that change outputs."""
    for backend in space.backends.values():
        own = {item.name for item in backend.parameters if item.step or (numerics and item.numerics)}
        yield {BACKEND, CHAIN, *own}


def _spelled(value: Value) -> tuple[bool, Value]:
    """Return a key that tells true from 1."""
    return isinstance(value, bool), value
