"""Draws courses over a space that look like inference on CPUs: a prior for judging searches, not evidence.

ln time is the sum of: an effect of backend, artifact and precision; a thread curve (serial part, parallel part, cost of
a thread) of that; small effects of the other values, half of them none, by backend; effects of pairs; a rest of each
point of its own (method.md 2.2).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.replay.trace_course import Course
from tuner.space.parameters import Value
from tuner.space.resolved import ResolvedSpace
from tuner.space.walking import Point

__all__ = ["Relief", "draw_course"]

PAIRED = 0.25
"""Share of the pairs of parameters that act together."""
Draw = Callable[[np.random.Generator], float]


@dataclass(frozen=True)
class Relief:
    """How strong the parts of a landscape are (standard deviations of ln time unless said).

    Attributes:
        artifact: Of backend, chain and precision.
        setting: Of one value of another parameter that has an effect.
        inert: Share of parameters without effect in a backend.
        pair: Of one pair of values.
        rest: Of a point of its own.
        unfaithful: Chance that a numerics key with a precision or step below float32 misses its limit.
        failing: Chance that a backend has one value that makes it fail.
    """

    artifact: float = 0.45
    setting: float = 0.06
    inert: float = 0.5
    pair: float = 0.025
    rest: float = 0.004
    unfaithful: float = 0.25
    failing: float = 0.3


def draw_course(
    space: ResolvedSpace, points: Sequence[Point], *, seed: int, relief: Relief | None = None, n_cores: int = 8
) -> Course:
    """Return a course over `points`; the same seed draws the same one."""
    relief = relief or Relief()
    drawing = _Drawing(relief, n_cores, seed)
    keys = [space.numerics_key(point) for point in points]
    values = np.array([drawing.value(point) for point in points])
    artifacts = [_key(point, artifact=True) for point in points]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(artifacts))}
    faithful = {key: drawing.is_faithful(key, point) for key, point in dict(zip(keys, points, strict=True)).items()}
    failures = tuple(drawing.failure(point) for point in points)
    build = {name: drawing.build_s(point) for name, point in dict(zip(artifacts, points, strict=True)).items()}
    truth = np.where([bool(text) for text in failures], np.nan, values)
    start = np.nanmedian(truth)
    return Course(
        name=f"drawn-{seed}",
        truth=truth - start,
        is_faithful=np.array([faithful[key] for key in keys]),
        artifact=np.array([numbers[name] for name in artifacts]),
        build_s=np.array([build[name] for name in artifacts]),
        open_s=np.array([drawing.open_s(str(point["backend"])) for point in points]),
        measure_s=np.full(len(points), 3.0),
        failure=failures,
    )


class _Drawing:
    """Effects drawn when they are first asked for, by name, so that the order of points does not matter."""

    def __init__(self, relief: Relief, n_cores: int, seed: int) -> None:
        self.relief = relief
        self.n_cores = n_cores
        self.seed = seed
        self._kept: dict[tuple[object, ...], float] = {}

    def value(self, point: Point) -> float:
        relief, backend = self.relief, str(point["backend"])
        cell = _key(point, artifact=False)
        total = self._normal(("cell", cell)) * relief.artifact * 0.6
        total += self._normal(("backend", backend)) * relief.artifact * 0.8
        active: list[tuple[str, Value]] = []
        for name, value in point.items():
            if name == "backend" or (name, value) == ("artifact.chain", point.get("artifact.chain")):
                continue
            if "threads" in name and isinstance(value, int) and "interop" not in name:
                total += self._curve(cell, value)
                active.append((name, value))
            elif self._uniform(("inert", backend, name)) >= relief.inert:
                total += self._effect(backend, name, value)
                active.append((name, value))
        for place, first in enumerate(active):
            for second in active[place + 1 :]:
                total += self._pair(backend, first, second)
        return total + relief.rest * self._normal(("rest", *sorted((n, repr(v)) for n, v in point.items())))

    def is_faithful(self, key: str, point: Point) -> bool:
        """Draw whether outputs below float32 keep the limit: by the step or precision, then by its settings."""
        low = [f"{name}={value}" for name, value in sorted(point.items()) if _is_low(name, value)]
        if not low:
            return True
        by_kind = self._uniform(("kind", point["backend"], *low)) >= self.relief.unfaithful
        return by_kind and self._uniform(("key", key)) >= self.relief.unfaithful / 2

    def failure(self, point: Point) -> str:
        """Return the message of the one value that makes this backend fail, if it has one and the point has it."""
        backend = str(point["backend"])
        if self._uniform(("fails", backend)) >= self.relief.failing:
            return ""
        names = sorted(name for name in point if name.startswith(("session.", "artifact.")) and "chain" not in name)
        scored = [(self._uniform(("fault", backend, name, repr(point[name]))), name) for name in names]
        bad = [name for score, name in scored if score < 0.12]  # noqa: PLR2004 - about one value in eight
        return f"{bad[0]}={point[bad[0]]} is not supported" if bad and "threads" not in bad[0] else ""

    def build_s(self, point: Point) -> float:
        """Draw the seconds to build a point's artifact."""
        chain = str(point.get("artifact.chain", "source"))
        if chain in ("source", "eager"):
            return 0.0
        compiled = 50.0 if "compiled" in chain else 0.0
        return compiled + 8.0 + 25.0 * self._uniform(("build", _key(point, artifact=True)))

    def open_s(self, backend: str) -> float:
        """Draw the seconds to open a backend."""
        return 1.5 + 4.0 * self._uniform(("open", backend))

    def _curve(self, cell: str, threads: int) -> float:
        serial = 0.02 + 0.25 * self._uniform(("serial", cell)) ** 2
        cost = 0.004 + 0.02 * self._uniform(("cost", cell))
        beyond = max(0, threads - self.n_cores) * 0.03
        return float(
            np.log(serial + (1 - serial) / min(threads, self.n_cores) + cost * threads / self.n_cores + beyond)
        )

    def _effect(self, backend: str, name: str, value: Value) -> float:
        shared = 0.5 * self._normal(("effect", name, repr(value)))
        return self.relief.setting * (shared + 0.85 * self._normal(("effect", backend, name, repr(value))))

    def _pair(self, backend: str, first: tuple[str, Value], second: tuple[str, Value]) -> float:
        if self._uniform(("paired", backend, first[0], second[0])) >= PAIRED:
            return 0.0
        return self.relief.pair * self._normal(("pair", backend, repr(first), repr(second)))

    def _normal(self, key: tuple[object, ...]) -> float:
        return self._drawn(("n", *key), lambda rng: float(rng.standard_normal()))

    def _uniform(self, key: tuple[object, ...]) -> float:
        return self._drawn(("u", *key), lambda rng: float(rng.random()))

    def _drawn(self, key: tuple[object, ...], draw: Draw) -> float:
        found = self._kept.get(key)
        if found is None:
            digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
            found = draw(np.random.default_rng([self.seed, int.from_bytes(digest, "little")]))
            self._kept[key] = found
        return found


def _key(point: Mapping[str, Value], *, artifact: bool) -> str:
    """Return what points of one artifact share, or with the precision those of one cell."""
    names = [name for name in point if name == "backend" or name.startswith("artifact.")]
    if not artifact:
        names = [name for name in names if name in ("backend", "artifact.chain")]
        names += [name for name in point if name.endswith("precision")]
    return " ".join(f"{name}={point[name]}" for name in sorted(names))


def _is_low(name: str, value: Value) -> bool:
    """Say whether a value computes below float32."""
    if name == "artifact.chain":
        return "int8" in str(value)
    return name.endswith("precision") and value != "float32"
