"""What is known of a model without running it, and of its prepared traffic; it opens no file."""

from typing import Literal

from pydantic import Field

from tuner.records.base import Record
from tuner.records.workload import Metric, Workload

ModelKind = Literal["huggingface", "onnx", "openvino", "gguf", "python"]


class Pooling(Record):
    """How a model turns token vectors into one vector.

    Attributes:
        mode: ``mean`` (masked), ``cls``, ``max`` or ``last``.
        normalize: Whether vectors are scaled to length one afterwards.
        source: The file that says so, or ``default``.
    """

    mode: Literal["mean", "cls", "max", "last"] = "mean"
    normalize: bool = True
    source: str = "default"


class ModelFacts(Record):
    """A model as its files describe it.

    Attributes:
        source: As the user named it.
        path: Absolute path of the directory or file.
        sha256: Digest over the weights, the configuration and the tokenizer; a moved model keeps it.
        task: A Hugging Face task name or ``forward``.
        model_type: ``model_type`` of the configuration, None where there is none.
        architecture: First architecture of the configuration, None where there is none.
        weight_bytes: Size of the weights on disk.
        n_parameters: Number of parameters, None if the files do not say.
        max_length: Longest input in tokens, None if unlimited or unknown.
        pooling: Only for feature-extraction of text.
        encode_length: Tokens at which the model's own tokenizing cuts a text, None if only `max_length` does.
        is_convolutional: It is known to convolve images.
        weights_sha256: Of the weights that the code of a ``py:`` model made; None for files.
    """

    source: str
    kind: ModelKind
    path: str
    sha256: str
    task: str
    model_type: str | None = None
    architecture: str | None = None
    weight_bytes: int = Field(ge=0)
    n_parameters: int | None = None
    max_length: int | None = None
    hidden_size: int | None = None
    n_layers: int | None = None
    pooling: Pooling | None = None
    encode_length: int | None = None
    is_convolutional: bool = False
    weights_sha256: str | None = None


class TensorSpec(Record):
    """One input or output: numpy dtype name and shape, None for a free axis."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]

    @property
    def free_axes(self) -> tuple[int, ...]:
        """The axes that are free."""
        return tuple(axis for axis, size in enumerate(self.shape) if size is None)


class Prepared(Record):
    """A prepared workload: a directory of files that workers read; ``prepared.json`` in it is this record.

    Attributes:
        inputs: Input tensors by name, as fed to every backend.
        outputs: Output names of the reference.
        n_batches: Timed batches in ``inputs.npz``, arrays named ``<batch>.<input>``, cycled in order.
        n_samples: Rows in ``samples.npz`` (same naming, one batch per sample), for fidelity.
        items_per_batch: Rows of one timed batch.
        method: How fidelity is judged: ``embedding``, ``classes`` or ``graph``.
        reference: How ``references.npz`` was made, e.g. ``pytorch eager float32``.
        texts: What the inputs are made of: ``builtin en zh``, ``builtin en``, ``data``,
            ``examples`` (of a ``py:`` model) or ``generated``.
        metric: The user's accuracy; its rows are in ``rows.json``, in the order of the samples.
        metric_reference: The reference's figure of it.
        code_dir: Directory from which a metric of the user's may be imported.
    """

    model: ModelFacts
    workload: Workload
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[str, ...]
    n_batches: int = Field(ge=1)
    n_samples: int = Field(ge=1)
    items_per_batch: int = Field(ge=1)
    method: Literal["embedding", "classes", "graph"]
    reference: str
    texts: str = "generated"
    prepare_s: float | None = None
    metric: Metric | None = None
    metric_reference: float | None = None
    n_rows: int | None = None
    code_dir: str | None = None
