"""What a directory with an encoder for CTranslate2 says of itself; ``encoder.json`` in it is this record."""

from pydantic import Field

from tuner.records.base import Record


class Encoder(Record):
    """A converted encoder.

    Attributes:
        inputs: Names of the arrays the model takes.
        output: Name of its one output.
        quantization: Of the weights in the file.
        n_tokens: Rows of the table of tokens; the engine reads memory that is not its own for a larger id.
        n_types: Rows of the table of token types.
        longest: Most tokens of a row.
    """

    inputs: tuple[str, ...]
    output: str
    quantization: str
    n_tokens: int = Field(ge=1)
    n_types: int = Field(ge=0)
    longest: int = Field(ge=1)
