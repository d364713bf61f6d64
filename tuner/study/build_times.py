"""How long a build step will take: what the store remembers, else the step's own guess; it builds nothing."""

from collections.abc import Iterable
from statistics import median

from tuner.artifacts.store import Manifest
from tuner.errors import UsageError
from tuner.plugins import plugin
from tuner.records.model import ModelFacts

__all__ = ["BuildTimes", "guess_s"]

UNKNOWN_STEP_S = (5.0, 150.0)
GIB = float(2**30)


def guess_s(step: str, weight_bytes: int) -> float:
    """Return the seconds that a step takes by its own guess (``build_guess_s``) with weights of this size."""
    fixed_s, s_per_gib = getattr(plugin("tuner.steps", step), "build_guess_s", UNKNOWN_STEP_S)
    return float(fixed_s + s_per_gib * weight_bytes / GIB)


class BuildTimes:
    """Expected seconds of steps for one model.

    A step that was built from this model takes what it took (the median). One that was only built from others takes
    its guess, corrected by how far the guess was off with those.

    Args:
        model: What is built from.
        manifests: Of what is in the store.
    """

    def __init__(self, model: ModelFacts, manifests: Iterable[Manifest] = ()) -> None:
        self.model = model
        self._own: dict[str, list[float]] = {}
        self._off: dict[str, list[float]] = {}
        for manifest in manifests:
            self.note(manifest)

    def note(self, manifest: Manifest) -> None:
        """Take a finished build into account; a manifest that does not tell its step or model is passed over."""
        chain = manifest.made_of.get("chain")
        step = chain[-1].get("step") if isinstance(chain, list) and chain and isinstance(chain[-1], dict) else None
        if not isinstance(step, str):
            return
        if manifest.made_of.get("model") == self.model.sha256:
            self._own.setdefault(step, []).append(manifest.build_s)
        elif manifest.weight_bytes is not None:
            try:
                guess = guess_s(step, manifest.weight_bytes)
            except UsageError:
                return  # a step that is not installed here
            self._off.setdefault(step, []).append(manifest.build_s / guess)

    def expected_s(self, step: str) -> float:
        """Return the seconds that a step will take."""
        own = self._own.get(step)
        if own:
            return median(own)
        return guess_s(step, self.model.weight_bytes) * median(self._off.get(step, [1.0]))
