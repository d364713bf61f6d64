"""Compiles a model to machine code ahead of time (AOTInductor), for the shapes of the traffic.

The package holds native code for this CPU, so it is opened only from the tuner's own cache directory.
"""

import shutil
import time
import warnings
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from pydantic import Field

from tuner.errors import Unsupported
from tuner.models.inductor import choose_cache, compiler, inductor_options
from tuner.models.judging import read_numbered
from tuner.models.tracing import Batch, positional, takes_text
from tuner.models.variants import answer_of
from tuner.models.wording import one_line
from tuner.plugins import installed_versions, space_file
from tuner.records import base
from tuner.records.model import Prepared
from tuner.records.package import Package, PackagedShape

if TYPE_CHECKING:
    import torch

    from tuner.models.live import Live

__all__ = ["AotInductor", "AotInductorSettings"]

MOST_SHAPES = 4


class AotInductorSettings(base.Settings):
    """How the code is made.

    Attributes:
        precision: Of the weights and the computation; ``bfloat16_autocast``: what PyTorch's autocast picks.
        shapes: ``static``: a graph for each shape of the traffic, at most four; ``dynamic``: one for all.
        max_autotune: C++ templates of matrix products are measured against the library's kernels, and the faster taken.
        freezing: Weights are laid out for the CPU at compile time.
        attention: transformers' implementation that is compiled.
        channels_last: Weights and inputs of convolutions lie channels last.
        threads: OpenMP threads the loops are cut for; None: torch's default.
        simdlen: Bits of the vectors that loops use; None: the widest that the CPU has.
        compile_cache: Where inductor works: ``memory`` is a folder of ours in /dev/shm.
    """

    precision: Literal["float32", "bfloat16", "bfloat16_autocast"] = "float32"
    shapes: Literal["static", "dynamic"] = "static"
    max_autotune: bool = False
    freezing: bool = True
    attention: Literal["sdpa", "eager"] = "sdpa"
    channels_last: bool = False
    threads: int | None = Field(default=None, ge=1)
    simdlen: Literal[256, 512] | None = None
    compile_cache: Literal["disk", "memory"] = "disk"


class AotInductor:
    """The step."""

    name: ClassVar[str] = "aot_inductor"
    Settings: ClassVar[type[base.Settings]] = AotInductorSettings
    after: ClassVar[tuple[str, ...]] = ()
    build_guess_s: ClassVar[tuple[float, float]] = (25.0, 400.0)
    distributions: ClassVar[tuple[str, ...]] = ("torch", "transformers")
    uses_data: ClassVar[bool] = True
    native: ClassVar[bool] = True
    computes: ClassVar[str | None] = None
    """What the products are in, where the precision does not say it."""

    def installed(self) -> dict[str, str] | None:
        """Return versions of what compiles."""
        return installed_versions(*self.distributions)

    def space(self) -> Traversable:
        """Return the space of its settings."""
        return space_file(f"{self.name}.toml")

    def build(self, inputs: Mapping[str, Path], settings: base.Settings, directory: Path) -> None:
        """Write ``package.json`` and one ``.pt2`` a shape.

        Raises:
            Unsupported: No compiler, too many shapes, or it cannot be traced or compiled so.
        """
        import torch

        chosen = cast("AotInductorSettings", settings)
        if compiler() is None:
            raise Unsupported("ahead-of-time compiling needs a C++ compiler: install g++, or name one in CXX")
        choose_cache(chosen.compile_cache, directory / "inductor")
        prepared = Prepared.from_json((inputs["prepared"] / "prepared.json").read_bytes(), source="prepared.json")
        if chosen.threads is not None:
            torch.set_num_threads(chosen.threads)
        live = self.opened(prepared, chosen)
        names = tuple(spec.name for spec in live.inputs)
        batches = distinct_batches(inputs["prepared"] / "inputs.npz", names)
        if chosen.shapes == "static" and len(batches) > MOST_SHAPES:
            raise Unsupported(
                f"{len(batches)} shapes in the traffic, at most {MOST_SHAPES} are compiled: shapes=dynamic"
            )
        start = time.perf_counter()
        outputs = tuple(answer_of(live.module, batches[0]))
        graph = positional(live.module, names, outputs)
        free = None
        if chosen.shapes == "dynamic":
            batches, free = batches[-1:], _free_axes(prepared, names)
        made = []
        for number, batch in enumerate(batches):
            file, shapes = directory / f"{number}.pt2", shapes_of(batch)
            try:
                with warnings.catch_warnings(), torch.no_grad():
                    warnings.simplefilter("ignore")
                    _compile(graph, tuple(torch.from_numpy(array) for array in batch.values()), file, chosen, free)
            except Exception as error:
                text = f"{type(error).__name__}: {one_line(error)}"
                raise Unsupported(f"compiling for shapes {shapes}: {text}") from error
            made.append(PackagedShape(file=file.name, shapes=shapes if free is None else None))
        package = Package(
            inputs=names,
            outputs=outputs,
            long_outputs=_long_outputs(live, batches[0]),
            precision=chosen.precision,
            computes=self.computes,
            threads=torch.get_num_threads(),
            shapes=tuple(made),
            settings=chosen.model_dump(mode="json"),
            compile_s=round(time.perf_counter() - start, 3),
        )
        shutil.rmtree(directory / "inductor", ignore_errors=True)
        (directory / "package.json").write_text(package.to_json(indent=1))

    def opened(self, prepared: Prepared, chosen: AotInductorSettings) -> "Live":
        """Open the model that is compiled.

        Raises:
            Unsupported: It cannot be opened so.
        """
        from tuner.models.live import open_live

        return open_live(prepared.model, chosen.precision, chosen.attention, channels_last=chosen.channels_last)


def distinct_batches(file: Path, names: tuple[str, ...]) -> list[Batch]:
    """Return one timed batch of every distinct set of shapes, its inputs in the order of `names`, smallest first."""
    found: dict[tuple[tuple[int, ...], ...], Batch] = {}
    for batch in read_numbered(file):
        ordered = {name: batch[name] for name in names}
        found.setdefault(shapes_of(ordered), ordered)
    return [found[shapes] for shapes in sorted(found)]


def shapes_of(batch: Batch) -> tuple[tuple[int, ...], ...]:
    """Return the shape of every input."""
    return tuple(array.shape for array in batch.values())


def _free_axes(prepared: Prepared, names: tuple[str, ...]) -> list[tuple[int, ...]]:
    """Return the free axes of every input.

    Raises:
        Unsupported: There is none.
    """
    axes = {spec.name: spec.free_axes for spec in prepared.inputs}
    free = [axes[name] for name in names]
    if not any(free):
        raise Unsupported("no axis of the inputs is free: shapes=static")
    return free


def _long_outputs(live: "Live", batch: Batch) -> tuple[str, ...]:
    """Return the outputs of a text model whose axis 1 is the length."""
    if not takes_text(live):
        return ()
    short = {name: array[:, : max(2, array.shape[1] // 2)].copy() for name, array in batch.items()}
    one, two = answer_of(live.module, batch), answer_of(live.module, short)
    return tuple(name for name in one if one[name].shape[1:2] != two[name].shape[1:2])


def _compile(
    graph: "torch.nn.Module",
    example: "tuple[torch.Tensor, ...]",
    file: Path,
    chosen: AotInductorSettings,
    free: list[tuple[int, ...]] | None,
) -> None:
    import torch

    axes = None
    if free is not None:
        axes = (tuple(dict.fromkeys(some, torch.export.Dim.DYNAMIC) for some in free),)
        pairs = zip(example, free, strict=True)  # one row would be taken for a constant
        example = tuple(torch.cat([tensor, tensor]) if 0 in some else tensor for tensor, some in pairs)
    exported = torch.export.export(graph, example, dynamic_shapes=axes)
    torch._inductor.aoti_compile_and_package(  # noqa: SLF001 - documented under this name
        exported,
        package_path=str(file),
        inductor_configs=inductor_options(
            max_autotune=chosen.max_autotune, freezing=chosen.freezing, simdlen=chosen.simdlen
        ),
    )
