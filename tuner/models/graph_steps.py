"""What build steps that make another graph of an ONNX graph share: settings, where the graph is, refusals in a line."""

import shutil
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar, NamedTuple

from pydantic import Field

from tuner.errors import Unsupported
from tuner.models.graphs import summarize
from tuner.models.onnx_files import EXTERNAL_DATA_BYTES, find_graph, silence, with_shapes
from tuner.models.settling import settle
from tuner.models.wording import one_line
from tuner.plugins import installed_versions, space_file
from tuner.records import base

LEAST_OPSET, OPSET, IR_VERSION = 13, 17, 8
"""The first opset with scales by channel; what older graphs become."""
WORK = "work"
"""Where a step keeps drafts, below its directory, until it is done."""


class KeepingFloat(base.Settings):
    """Settings of a step that can leave some of a graph as it is.

    Attributes:
        keep_float: How many of the most sensitive products stay in float32.
    """

    keep_float: int = Field(default=0, ge=0)


class ShapedGraph(NamedTuple):
    """A graph with shapes, a directory for drafts, and whether weights lie beside graphs of this size."""

    file: Path
    work: Path
    is_large: bool


class GraphStep:
    """A step that reads ``model.onnx`` of the export, or the source.

    Attributes:
        needs: Distributions that do the work.
        doing: What is done, in words that "of FILE" can follow.
    """

    name: ClassVar[str]
    after: ClassVar[tuple[str, ...]] = ("onnx_export", "ort_sensitivity")
    needs: ClassVar[tuple[str, ...]] = ("onnxruntime", "onnx")
    doing: ClassVar[str]

    def installed(self) -> dict[str, str] | None:
        """Return versions of what does the work."""
        return installed_versions(*self.needs)

    def space(self) -> Traversable:
        """Return the space of its settings."""
        return space_file(f"{self.name}.toml")

    def build(self, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write the other graph.

        Raises:
            Unsupported: There is no ONNX file, the data cannot calibrate, or a tool refuses.
        """
        source = find_graph(inputs, self.doing)
        work = directory / WORK
        work.mkdir()
        try:
            with silence():
                self.make(settle(source, work / "settled"), inputs, settings, directory)
        except Unsupported:
            raise
        except Exception as error:
            text = f"{self.doing} of {source.name}: {type(error).__name__}: {one_line(error)}"
            raise Unsupported(text) from error
        finally:
            shutil.rmtree(work)

    def make(self, source: Path, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write the other graph of `source` (its external data are plain files); whatever is raised refuses."""
        raise NotImplementedError


def is_large(source: Path) -> bool:
    """Say whether weights lie beside a graph of this size: protobuf ends at 2 GiB."""
    return summarize(source).n_bytes > EXTERNAL_DATA_BYTES


def shaped(source: Path, directory: Path) -> ShapedGraph:
    """Return the graph with inferred shapes and basic fusions; it is gone when the step has been built."""
    work, large = directory / WORK, is_large(source)
    return ShapedGraph(with_shapes(modern(source, work), work, is_large=large), work, large)


def modern(source: Path, work: Path) -> Path:
    """Return the graph with operators of a version that the tools quantize and fuse; a copy where it was older.

    Raises:
        Unsupported: It is older and cannot be converted.
    """
    import onnx
    from onnx import version_converter

    opset = max(
        (
            item.version
            for item in onnx.load(str(source), load_external_data=False).opset_import
            if item.domain in ("", "ai.onnx")
        ),
        default=OPSET,
    )
    if opset >= LEAST_OPSET:
        return source
    model = onnx.load(str(source))
    known = {item.name for item in model.graph.input}
    for item in model.graph.initializer:  # the converter knows constants only as inputs with a default
        if item.name not in known:
            model.graph.input.append(onnx.helper.make_tensor_value_info(item.name, item.data_type, list(item.dims)))
    try:
        converted = version_converter.convert_version(model, OPSET)
    except Exception as error:
        text = f"opset {opset} of {source.name} is too old to quantize and cannot be converted ({one_line(error)})"
        raise Unsupported(f"{text}: export the model again with opset {LEAST_OPSET} or newer") from error
    constants = {item.name for item in converted.graph.initializer}
    real = [item for item in converted.graph.input if item.name not in constants]
    del converted.graph.input[:]
    converted.graph.input.extend(real)
    converted.ir_version = max(converted.ir_version, IR_VERSION)
    onnx.save(converted, str(work / "modern.onnx"))
    return work / "modern.onnx"
