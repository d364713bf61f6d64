"""What a directory of compiled packages says of itself; ``package.json`` in it is this record."""

from pydantic import Field

from tuner.records.base import Record


class PackagedShape(Record):
    """One compiled graph.

    Attributes:
        file: Relative to the directory.
        shapes: Of every input, in order; None if axes are free.
    """

    file: str
    shapes: tuple[tuple[int, ...], ...] | None


class Package(Record):
    """Compiled graphs of one model.

    Attributes:
        inputs: Names in the order the graphs take them.
        outputs: Names in the order they answer.
        long_outputs: Those whose axis 1 is the length.
        precision: Of the weights and the computation; where no graph fits, of the eager model too.
        computes: What the products are in, if that is another type.
        threads: OpenMP threads the code was made for.
        settings: Of the step that made it, as text, to be shown.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    long_outputs: tuple[str, ...]
    precision: str
    computes: str | None = None
    threads: int = Field(ge=1)
    shapes: tuple[PackagedShape, ...]
    settings: dict[str, str | int | bool | None] = Field(default_factory=dict)
    compile_s: float = 0.0
