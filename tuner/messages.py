"""Commands and answers between parent and worker, one JSON line each; no I/O and no meaning beyond the fields."""

from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from tuner.errors import FailureKind, ProtocolError
from tuner.records.base import Record, Scalar
from tuner.records.measurement import Effective, Fidelity
from tuner.records.model import ModelFacts
from tuner.records.workload import Metric, Workload


class Prepare(Record):
    """Make inputs, samples and references of a workload in `directory`.

    Attributes:
        data: Path of the user's data, None for the built-in texts.
        max_samples: Most rows of the fidelity set.
        sample_budget_s: Time for the reference; the fidelity set shrinks to fit it, never below 16 rows.
        metric: The user's accuracy on the rows of `data`, which are then the samples, all of them.
        code_dir: Where a metric of the user's may be imported from.
    """

    command: Literal["prepare"] = "prepare"
    model: ModelFacts
    workload: Workload
    data: str | None
    directory: str
    max_samples: int
    sample_budget_s: float
    metric: Metric | None = None
    code_dir: str | None = None
    allow_network: bool = False
    trust_remote_code: bool = False


class Describe(Record):
    """Call the function of a ``py:`` model whose module is the file `path`, and describe what it returns."""

    command: Literal["describe"] = "describe"
    model: str
    path: str
    task: str


class Build(Record):
    """Run one build step; `inputs` maps step names, ``source`` and ``prepared`` to paths."""

    command: Literal["build"] = "build"
    step: str
    settings: dict[str, Scalar]
    inputs: dict[str, str]
    directory: str


class Load(Record):
    """Open the model with one backend; `artifact` is the last step's directory or the model's source.

    Attributes:
        session: Settings asked for; a setting that is not in force afterwards fails the load as ``not_applied``.
        prepared: Directory of the prepared workload.
    """

    command: Literal["load"] = "load"
    backend: str
    artifact: str
    session: dict[str, Scalar]
    prepared: str
    cache_dir: str


class Warm(Record):
    """Warm up: every distinct shape once, then windows until they agree; `cap_s` bounds it.

    Attributes:
        quick_limit_s: Give up warming once the fastest of three warm calls is above this (dominance); None never.
    """

    command: Literal["warm"] = "warm"
    cap_s: float = 10.0
    quick_limit_s: float | None = None


class RunBlock(Record):
    """Time `n` calls after discarding max(`discard_calls`, `discard_s`)."""

    command: Literal["block"] = "block"
    n: int = Field(ge=1)
    discard_calls: int = 3
    discard_s: float = 0.05


class CheckFidelity(Record):
    """Run up to `max_samples` fidelity samples and compare them with the references."""

    command: Literal["fidelity"] = "fidelity"
    max_samples: int
    quick_samples: int = 64


class Probe(Record):
    """Measure the host from inside a worker: ``sentinel`` (spin and sweep, `repeats` times)."""

    command: Literal["probe"] = "probe"
    what: Literal["sentinel"] = "sentinel"
    repeats: int = 50


class Quit(Record):
    """Leave."""

    command: Literal["quit"] = "quit"


Command = Annotated[
    Prepare | Describe | Build | Load | Warm | RunBlock | CheckFidelity | Probe | Quit,
    Field(discriminator="command"),
]


class Ready(Record):
    """The interpreter is up, mask and environment in force; nothing heavy is imported."""

    answer: Literal["ready"] = "ready"
    versions: dict[str, str]
    pid: int
    cpus: tuple[int, ...]


class PreparedFiles(Record):
    """Workload prepared; `files` are relative to its directory."""

    answer: Literal["prepared"] = "prepared"
    files: tuple[str, ...]
    prepare_s: float
    call_s: float


class Described(Record):
    """A model that is code, described."""

    answer: Literal["described"] = "described"
    facts: ModelFacts


class Built(Record):
    """Step built."""

    answer: Literal["built"] = "built"
    build_s: float
    files: tuple[str, ...]


class Loaded(Record):
    """Model open, settings read back.

    Attributes:
        spawn_to_loaded_s: From the start of the process, by the kernel's record, to now.
        peak_rss_bytes: Peak while loading; the peak is reset afterwards.
    """

    answer: Literal["loaded"] = "loaded"
    load_s: float
    spawn_to_loaded_s: float
    peak_rss_bytes: int | None
    rss_bytes: int | None
    effective: Effective
    versions: dict[str, str]


class Warmed(Record):
    """Warm-up done.

    Attributes:
        call_s: Median of the last window.
        fastest_s: Fastest of the first three warm calls of the first shape.
        kind: ``flat``, ``warmup``, ``slowdown``, ``no_steady``, ``capped`` (slow calls filled the cap) or
            ``dominated`` (given up by `quick_limit_s`).
    """

    answer: Literal["warmed"] = "warmed"
    first_call_s: float
    fastest_s: float
    call_s: float
    calls: int
    wall_s: float
    kind: Literal["flat", "warmup", "slowdown", "no_steady", "capped", "dominated"]
    n_shapes: int
    windows_s: tuple[float, ...]


class BlockDone(Record):
    """A block of timed calls."""

    answer: Literal["block"] = "block"
    latencies_s: tuple[FiniteFloat, ...]
    cpu_s: float
    wall_s: float
    discarded: int
    peak_rss_bytes: int | None
    rss_bytes: int | None
    major_faults: int | None
    involuntary_switches: int | None


class FidelityDone(Record):
    """Outputs compared; `stopped_early` says that the quick look refused them."""

    answer: Literal["fidelity"] = "fidelity"
    fidelity: Fidelity
    stopped_early: bool = False


class Probed(Record):
    """Probe done; seconds of every repeat by name."""

    answer: Literal["probed"] = "probed"
    samples_s: dict[str, tuple[float, ...]]


class Bye(Record):
    """The worker leaves."""

    answer: Literal["bye"] = "bye"


class Failed(Record):
    """The command failed; the worker leaves after this."""

    answer: Literal["failed"] = "failed"
    stage: str
    kind: FailureKind
    message: str


Answer = Annotated[
    Ready | PreparedFiles | Described | Built | Loaded | Warmed | BlockDone | FidelityDone | Probed | Bye | Failed,
    Field(discriminator="answer"),
]

_COMMANDS: TypeAdapter[Command] = TypeAdapter(Command)
_ANSWERS: TypeAdapter[Answer] = TypeAdapter(Answer)


def encode(message: Record) -> bytes:
    """Return `message` as one line of JSON."""
    return message.to_json().encode() + b"\n"


def decode_command(line: bytes) -> Command:
    """Read a command.

    Raises:
        ProtocolError: Not a command.
    """
    try:
        return _COMMANDS.validate_json(line)
    except ValidationError as error:
        raise ProtocolError(f"not a command of the worker: {error.errors(include_url=False)[0]['msg']}") from None


def decode_answer(line: bytes) -> Answer:
    """Read an answer.

    Raises:
        ProtocolError: Not an answer.
    """
    try:
        return _ANSWERS.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ProtocolError(f"not an answer of the worker: {first['loc']}: {first['msg']}") from None
