"""Compiles a Hugging Face model to machine code ahead of time (AOTInductor), for the shapes of the traffic.

The package holds native code for this CPU, so it is opened only from the tuner's own cache directory.
"""

import os
import shutil
import time
import warnings
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from tuner.errors import Unsupported
from tuner.models.inductor import compiler, inductor_options
from tuner.models.wording import one_line
from tuner.plugins import installed_versions, space_file
from tuner.records import base
from tuner.records.model import Prepared
from tuner.records.package import Package, PackagedShape

if TYPE_CHECKING:
    import torch

__all__ = ["AotInductor", "AotInductorSettings"]

MOST_SHAPES = 4
Batch = dict[str, np.ndarray]


class AotInductorSettings(base.Settings):
    """How the code is made.

    Attributes:
        precision: Of the weights and the computation.
        shapes: ``static``: a graph for each shape of the traffic, at most four; ``dynamic``: one for all.
        max_autotune: C++ templates of matrix products are measured against the library's kernels, and the faster taken.
        freezing: Weights are laid out for the CPU at compile time.
        attention: transformers' implementation that is compiled.
        threads: OpenMP threads the loops are cut for; None: torch's default.
    """

    precision: Literal["float32", "bfloat16"] = "float32"
    shapes: Literal["static", "dynamic"] = "static"
    max_autotune: bool = False
    freezing: bool = True
    attention: Literal["sdpa", "eager"] = "sdpa"
    threads: int | None = Field(default=None, ge=1)


class AotInductor:
    """The step."""

    name: ClassVar[str] = "aot_inductor"
    Settings: ClassVar[type[base.Settings]] = AotInductorSettings
    after: ClassVar[tuple[str, ...]] = ()
    build_guess_s: ClassVar[tuple[float, float]] = (25.0, 400.0)
    distributions: ClassVar[tuple[str, ...]] = ("torch", "transformers")
    uses_data: ClassVar[bool] = True
    native: ClassVar[bool] = True

    def installed(self) -> dict[str, str] | None:
        """Return versions of what compiles."""
        return installed_versions("torch", "transformers")

    def space(self) -> Traversable:
        """Return the space of its settings."""
        return space_file("aot_inductor.toml")

    def build(self, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write ``package.json`` and one ``.pt2`` a shape.

        Raises:
            Unsupported: No compiler, no model of token ids, or it cannot be traced or compiled so.
        """
        import torch

        from tuner.models.live import live_module, text_inputs_of

        chosen = cast("AotInductorSettings", settings)
        if compiler() is None:
            raise Unsupported("ahead-of-time compiling needs a C++ compiler: install g++, or name one in CXX")
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(directory / "inductor"))
        prepared = Prepared.from_json((inputs["prepared"] / "prepared.json").read_bytes(), source="prepared.json")
        if chosen.threads is not None:
            torch.set_num_threads(chosen.threads)
        module = live_module(prepared.model, chosen.precision, chosen.attention)
        names = text_inputs_of(module)
        shapes = traffic_shapes(inputs["prepared"] / "inputs.npz", names[0])
        if chosen.shapes == "static" and len(shapes) > MOST_SHAPES:
            raise Unsupported(
                f"{len(shapes)} shapes in the traffic, at most {MOST_SHAPES} are compiled: shapes=dynamic"
            )
        start = time.perf_counter()
        graph, outputs, long_outputs = _tupled(module, names, shapes[0])
        made = []
        for number, shape in enumerate(shapes if chosen.shapes == "static" else shapes[-1:]):
            file = directory / f"{number}.pt2"
            try:
                with warnings.catch_warnings(), torch.no_grad():
                    warnings.simplefilter("ignore")
                    _compile(graph, _example(names, shape), file, chosen)
            except Exception as error:
                text = f"{type(error).__name__}: {one_line(error)}"
                raise Unsupported(f"compiling for shape {shape}: {text}") from error
            rows, length = shape if chosen.shapes == "static" else (None, None)
            made.append(PackagedShape(file=file.name, rows=rows, length=length))
        package = Package(
            inputs=names,
            outputs=outputs,
            long_outputs=long_outputs,
            precision=chosen.precision,
            threads=torch.get_num_threads(),
            shapes=tuple(made),
            settings=chosen.model_dump(mode="json"),
            compile_s=round(time.perf_counter() - start, 3),
        )
        shutil.rmtree(directory / "inductor", ignore_errors=True)
        (directory / "package.json").write_text(package.to_json(indent=1))


def traffic_shapes(file: Path, name: str) -> list[tuple[int, int]]:
    """Return the distinct (rows, length) of input `name` over the timed batches, smallest first."""
    with np.load(file, allow_pickle=False) as arrays:
        shapes = {arrays[key].shape for key in arrays.files if key.partition(".")[2] == name}
    if not shapes or any(len(shape) != 2 for shape in shapes):  # noqa: PLR2004 - token ids: rows and length
        raise Unsupported(f"the traffic has no input {name} of two axes")
    return sorted((int(rows), int(length)) for rows, length in shapes)


def _example(names: tuple[str, ...], shape: tuple[int, int]) -> "tuple[torch.Tensor, ...]":
    import torch

    arrays = {"attention_mask": torch.ones(shape, dtype=torch.int64)}
    return tuple(arrays.get(name, torch.zeros(shape, dtype=torch.int64)) for name in names)


def _tupled(
    module: "torch.nn.Module", names: tuple[str, ...], shape: tuple[int, int]
) -> "tuple[torch.nn.Module, tuple[str, ...], tuple[str, ...]]":
    """Return a module that takes and answers tuples, float32 out; its outputs; and those whose axis 1 is the length."""
    import torch

    def answer(length: int) -> "dict[str, torch.Tensor]":
        with torch.no_grad():
            return cast(
                "dict[str, torch.Tensor]", module(**dict(zip(names, _example(names, (1, length)), strict=True)))
            )

    short, long = answer(shape[1]), answer(max(2, shape[1] // 2))
    outputs = tuple(short)
    moving = tuple(name for name in outputs if short[name].shape[1:2] != long[name].shape[1:2])

    class Tupled(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, *tensors: "torch.Tensor") -> "tuple[torch.Tensor, ...]":
            found = self.inner(**dict(zip(names, tensors, strict=True)))
            return tuple(found[name].float() if found[name].is_floating_point() else found[name] for name in outputs)

    return Tupled().eval(), outputs, moving


def _compile(
    graph: "torch.nn.Module", example: "tuple[torch.Tensor, ...]", file: Path, chosen: AotInductorSettings
) -> None:
    import torch

    free = None
    if chosen.shapes == "dynamic":
        axes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
        free = (tuple(axes for _ in example),)
        example = tuple(torch.cat([tensor, tensor]) for tensor in example)
    exported = torch.export.export(graph, example, dynamic_shapes=free)
    torch._inductor.aoti_compile_and_package(  # noqa: SLF001 - documented under this name
        exported,
        package_path=str(file),
        inductor_configs=inductor_options(max_autotune=chosen.max_autotune, freezing=chosen.freezing),
    )
