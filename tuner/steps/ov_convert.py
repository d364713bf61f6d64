"""Converts a model from PyTorch to OpenVINO, attention as one operator; checked on batches it did not trace."""

import warnings
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from tuner.errors import Unsupported
from tuner.models.onnx_files import silence
from tuner.models.tracing import Subject, differences, open_subject
from tuner.models.variants import answer_of
from tuner.models.wording import one_line
from tuner.plugins import installed_versions, space_file
from tuner.records import base

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

        chosen = cast("OvConvertSettings", settings)
        subject = open_subject(inputs, chosen.attention)
        try:
            with silence(), warnings.catch_warnings(action="ignore"):
                model = _convert(openvino, subject)
        except Exception as error:
            raise Unsupported(f"conversion ({chosen.attention}): {type(error).__name__}: {one_line(error)}") from error
        for ports, wanted in ((model.inputs, subject.example), (model.outputs, subject.outputs)):
            for port, name in zip(ports, wanted, strict=True):
                port.get_tensor().set_names({name})
        openvino.save_model(model, str(directory / "model.xml"), compress_to_fp16=False)
        compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        for batch in subject.checks:
            found = dict(zip(subject.outputs, compiled(batch).values(), strict=True))
            reason = differences(found, answer_of(subject.module, batch), batch)
            if reason is not None:
                raise Unsupported(f"the converted graph {reason}")


def _convert(openvino: Any, subject: Subject) -> Any:  # noqa: ANN401 - the library is untyped
    import torch

    tensors = tuple(torch.from_numpy(array) for array in subject.example.values())
    sized = [
        (array, [-1 if axis in subject.free[name] else size for axis, size in enumerate(array.shape)])
        for name, array in subject.example.items()
    ]
    shapes = [(openvino.PartialShape(sizes), openvino.Type(array.dtype)) for array, sizes in sized]
    with torch.no_grad():
        return openvino.convert_model(subject.positional, example_input=tensors, input=shapes)
