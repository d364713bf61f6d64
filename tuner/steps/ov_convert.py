"""Converts a Hugging Face model from PyTorch to OpenVINO, attention as one operator; checked on other shapes."""

import contextlib
import logging
import warnings
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np

from tuner.errors import Unsupported
from tuner.models.tracing import CHECKED, TRACED, Batch, answer_of, differences, padded_batch, positional, vocabulary_of
from tuner.models.wording import one_line
from tuner.plugins import installed_versions, space_file
from tuner.records import base
from tuner.records.model import Prepared

if TYPE_CHECKING:
    import torch

__all__ = ["OvConvert", "OvConvertSettings"]


class OvConvertSettings(base.Settings):
    """How the graph is made.

    Attributes:
        attention: The implementation that is traced; ``sdpa`` stays one operator.
    """

    attention: Literal["sdpa", "eager"] = "sdpa"


class OvConvert:
    """The step."""

    name: ClassVar[str] = "ov_convert"
    Settings: ClassVar[type[base.Settings]] = OvConvertSettings
    after: ClassVar[tuple[str, ...]] = ()
    build_guess_s: ClassVar[tuple[float, float]] = (3.0, 30.0)
    distributions: ClassVar[tuple[str, ...]] = ("openvino", "torch", "transformers")
    output: ClassVar[str] = "openvino"
    extra: ClassVar[str] = "openvino"

    def installed(self) -> dict[str, str] | None:
        """Return versions of what converts."""
        return installed_versions("openvino", "torch", "transformers")

    def space(self) -> Traversable:
        """Return the space of its settings."""
        return space_file("ov_convert.toml")

    def build(self, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write ``model.xml`` and ``model.bin``.

        Raises:
            Unsupported: The model cannot be converted so, or the graph answers otherwise than PyTorch.
        """
        import openvino

        from tuner.models.live import live_module, text_inputs_of

        chosen = cast("OvConvertSettings", settings)
        prepared = Prepared.from_json((inputs["prepared"] / "prepared.json").read_bytes(), source="prepared.json")
        module = live_module(prepared.model, "float32", chosen.attention)
        names = text_inputs_of(module)
        random = np.random.default_rng(0)
        limits = (vocabulary_of(module), prepared.model.max_length or 512)
        example = padded_batch(TRACED, names, limits, random)
        outputs = tuple(answer_of(module, example))
        try:
            with _silence():
                model = _convert(openvino, positional(module, names, outputs), example)
        except Exception as error:
            raise Unsupported(f"conversion ({chosen.attention}): {type(error).__name__}: {one_line(error)}") from error
        for ports, wanted in ((model.inputs, names), (model.outputs, outputs)):
            for port, name in zip(ports, wanted, strict=True):
                port.get_tensor().set_names({name})
        openvino.save_model(model, str(directory / "model.xml"), compress_to_fp16=False)
        compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        for shape in CHECKED:
            batch = padded_batch(shape, names, limits, random)
            found = dict(zip(outputs, compiled(batch).values(), strict=True))
            reason = differences(found, answer_of(module, batch), batch)
            if reason is not None:
                raise Unsupported(f"the converted graph {reason}")


def _convert(openvino: Any, module: "torch.nn.Module", example: Batch) -> Any:  # noqa: ANN401 - the library is untyped
    import torch

    tensors = tuple(torch.from_numpy(array) for array in example.values())
    free = [(openvino.PartialShape([-1, -1]), openvino.Type.i64) for _ in tensors]
    with torch.no_grad():
        return openvino.convert_model(module, example_input=tensors, input=free)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep the tracer's chatter out of the log."""
    logging.getLogger("torch").setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(None):
        warnings.simplefilter("ignore")
        yield
