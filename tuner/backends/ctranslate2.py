"""CTranslate2 on CPUs: encoders of the BERT family that step ``ct2_convert`` made; it imports nothing heavier."""

import json
import os
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from tuner.backends.base import Batch, Context, Session, Settings
from tuner.errors import Unsupported
from tuner.models.encoders import answer, open_encoder
from tuner.plugins import installed_versions, space_file
from tuner.records.encoder import Encoder
from tuner.records.model import ModelFacts
from tuner.records.workload import Workload

__all__ = ["CTranslate2", "CTranslate2Session", "CTranslate2Settings"]

MODEL_TYPES = ("bert", "camembert", "distilbert", "roberta", "xlm-roberta")
ACTIVATIONS = (
    "gelu",
    "gelu_fast",
    "gelu_new",
    "gelu_python",
    "gelu_pytorch_tanh",
    "quick_gelu",
    "relu",
    "silu",
    "swish",
)
TASKS = Path("/proc/self/task")


class CTranslate2Settings(Settings):
    """Knobs of an encoder; None leaves the library's default. CPUs are the mask's matter, never the library's.

    Attributes:
        compute_type: Of the products. An int8 file computes in ``int8_float32`` by default.
        intra_threads: OpenMP threads of one encoder.
        inter_threads: Encoders that run at once, on the same weights.
    """

    compute_type: (
        Literal["float32", "int8_float32", "int16", "bfloat16", "int8_bfloat16", "float16", "int8_float16"] | None
    ) = None
    intra_threads: int | None = Field(default=None, ge=1)
    inter_threads: int | None = Field(default=None, ge=1)


class CTranslate2Session:
    """One open encoder."""

    def __init__(self, directory: Path, settings: CTranslate2Settings) -> None:
        self._encoder = Encoder.from_json((directory / "encoder.json").read_bytes(), source="encoder.json")
        self.input_names = self._encoder.inputs
        self._engine: Any = open_encoder(
            directory,
            compute_type=settings.compute_type or "default",
            intra_threads=settings.intra_threads or 0,
            inter_threads=settings.inter_threads or 1,
        )
        self._threads = self._count_threads()

    def run(self, batch: Batch) -> Batch:
        """Run one batch; the output is the caller's own copy."""
        return answer(self._engine, self._encoder, batch)

    def effective(self) -> dict[str, object]:
        """Return the type in force and the encoders as the library says them, and the threads that were counted."""
        computed = str(self._engine.compute_type)
        return {
            "compute_type": computed,
            "intra_threads": self._threads,
            "inter_threads": int(self._engine.num_encoders),
            "threads": self._threads,
            "precision": computed,
            "unverified": ["intra_threads"] if self._threads is None else [],
        }

    def close(self) -> None:
        """Free the weights."""
        self._engine.unload_model()

    def _count_threads(self) -> int | None:
        """Return the threads of one encoder: the library does not tell, but its first call starts all but one."""
        before = _n_threads()
        answer(self._engine, self._encoder, {"input_ids": np.zeros((1, 2), np.int64)})
        after = _n_threads()
        return None if before is None or after is None else after - before + 1


def _n_threads() -> int | None:
    try:
        return len(os.listdir(TASKS))  # noqa: PTH208 - names alone
    except OSError:
        return None


class CTranslate2:
    """Runs converted encoders."""

    name: ClassVar[str] = "ctranslate2"
    SessionSettings: ClassVar[type[Settings]] = CTranslate2Settings

    def installed(self) -> dict[str, str] | None:
        """Return the version of ctranslate2."""
        return installed_versions("ctranslate2")

    def supports(self, model: ModelFacts, workload: Workload) -> str | None:  # noqa: ARG002 - part of the protocol
        """Take embedding models whose shape the library's converter knows."""
        if model.kind != "huggingface":
            return f"CTranslate2 converts Hugging Face directories, not models of kind {model.kind}"
        if model.model_type not in MODEL_TYPES:
            return f"CTranslate2 is used for {', '.join(MODEL_TYPES)}, not for {model.model_type or 'unnamed models'}"
        if model.task != "feature-extraction":
            return f"CTranslate2 answers hidden states (feature-extraction), not {model.task}"
        return _unknown_part(Path(model.path))

    def space(self) -> Traversable:
        """Return its search space."""
        return space_file("ctranslate2.toml")

    def open(self, artifact: Path, settings: Settings, context: Context) -> Session:  # noqa: ARG002 - the protocol's
        """Open the directory of step ``ct2_convert``.

        Raises:
            Unsupported: It is another directory, or this CPU does not compute in that type.
        """
        if not (artifact / "encoder.json").is_file():
            raise Unsupported(f"CTranslate2 opens what step ct2_convert made, not {artifact.name}")
        return CTranslate2Session(artifact, cast("CTranslate2Settings", settings))


def _unknown_part(directory: Path) -> str | None:
    """Return what the configuration asks for and the converter does not have; None also where it cannot be read."""
    try:
        configuration = json.loads((directory / "config.json").read_text())
    except (OSError, ValueError):
        return None
    activation = configuration.get("hidden_act", configuration.get("activation", "gelu"))
    if activation not in ACTIVATIONS:
        return f"CTranslate2 has no activation {activation}"
    positions = configuration.get("position_embedding_type", "absolute")
    if positions != "absolute":
        return f"CTranslate2 has absolute positions for this model type, not {positions}"
    return "CTranslate2 encodes in both directions, the model is a decoder" if configuration.get("is_decoder") else None
