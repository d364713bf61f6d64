"""What a tuning run is asked for, checked before anything is spent; it starts nothing."""

import math
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from tuner.errors import UsageError
from tuner.loading.files import LIMIT_BYTES, looks_like_profile
from tuner.records.base import Record

_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(s|m|min|h)?\s*$")
SAMPLERS = ("auto", "tpe", "random", "brute")
TRUST = frozenset({"trust_code", "trust_remote_code"})
"""Options that only the one who runs a command can give: a profile may come from a stranger."""


class TuneRequest(Record):
    """The options of `autotune tune`, as texts where the command line has texts; see contract.md for meanings."""

    model: str
    task: str | None = None
    target: str = "p50"
    at_most: tuple[str, ...] = ()
    at_least: tuple[str, ...] = ()
    constraint: tuple[str, ...] = ()
    data: str | None = None
    metric: str | None = None
    max_loss: float | None = Field(default=None, ge=0)
    batch_size: int = Field(default=1, ge=1)
    lengths: tuple[int, ...] = (128,)
    concurrency: int = Field(default=1, ge=1)
    rate_per_s: float | None = Field(default=None, gt=0)
    budget_s: float = Field(default=900.0, gt=0)
    trials: int | None = Field(default=None, ge=1)
    seed: int = Field(default=0, ge=0)
    sampler: str = "auto"
    backends: tuple[str, ...] | None = None
    space: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()
    baseline: str | None = None
    reserve_cpus: int = Field(default=0, ge=0)
    output: str | None = None
    study: str | None = None
    storage: str | None = None
    cache_dir: str | None = None
    trust_code: bool = False
    trust_remote_code: bool = False
    command: tuple[str, ...] = ()


def make_request(options: Mapping[str, object]) -> TuneRequest:
    """Return the request of options by name; lists may stand for tuples and paths for texts.

    Raises:
        UsageError: An unknown option, a missing one, or a value that is empty, of another type or out of range.
    """
    unknown = sorted(set(options) - set(TuneRequest.model_fields))
    if unknown:
        raise UsageError(f"tune() has no option {unknown[0]!r}; it takes {', '.join(TuneRequest.model_fields)}")
    empty = next((name for name, value in options.items() if value == ""), None)
    if empty is not None:
        raise UsageError(f"option {empty} is empty: give a value or leave it out")
    try:
        return TuneRequest.model_validate({name: plain(value) for name, value in options.items()})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f"option {'.'.join(str(part) for part in first['loc'])}: {first['msg']}") from None


def plain(value: object) -> object:
    """Return lists as tuples and paths as texts."""
    if isinstance(value, (list, tuple)):
        return tuple(plain(item) for item in value)
    return str(value) if isinstance(value, Path) else value


def parse_duration(text: str) -> float:
    """Read ``90s``, ``15m``, ``1.5h`` or plain seconds.

    Raises:
        UsageError: Not a duration, or not above zero.
    """
    match = _DURATION.match(text)
    seconds = float(match[1]) * {None: 1, "s": 1, "m": 60, "min": 60, "h": 3600}[match[2]] if match else 0.0
    if not 0 < seconds < math.inf:
        raise UsageError(f"--budget {text!r}: write a duration above zero such as 90s, 15m or 1h")
    return seconds


def parse_lengths(text: str) -> tuple[int, ...]:
    """Read ``128,512`` or a file with one length a line.

    Raises:
        UsageError: Neither whole numbers above zero nor such a file.
    """
    path = Path(text)
    if not text.strip():
        raise UsageError("--lengths: at least one length above zero is needed")
    if not re.fullmatch(r"[\d,\s]+", text):
        try:
            text = ",".join(path.read_text().split())
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"--lengths {text!r}: neither lengths such as 128,512 nor a readable file ({error})"
            ) from error
    try:
        lengths = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise UsageError(f"--lengths {path}: write whole numbers, one a line or with commas between") from None
    if not lengths or min(lengths) < 1:
        raise UsageError("--lengths: at least one length above zero is needed")
    return lengths


def parse_fixes(texts: tuple[str, ...]) -> dict[str, str]:
    """Read ``KEY=VALUE`` texts.

    Raises:
        UsageError: A text without ``=``, or two values for one key.
    """
    fixes: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--fix {text!r}: write --fix KEY=VALUE, for example --fix session.allow_spinning=false")
        if fixes.setdefault(key.strip(), value.strip()) != value.strip():
            raise UsageError(f"--fix {key.strip()} is given twice: {fixes[key.strip()]} and {value.strip()}")
    return fixes


def check_sampler(name: str) -> str:
    """Return `name`.

    Raises:
        UsageError: Not a sampler.
    """
    if name not in SAMPLERS:
        raise UsageError(f"unknown sampler {name!r}: choose one of {', '.join(SAMPLERS)}")
    return name


def output_path(request: TuneRequest) -> Path:
    """Return where the profile goes, after checking that its directory can be written.

    Raises:
        UsageError: It cannot, or something that is no profile stands there: the model, the data, a device.
    """
    name = re.sub(r"[^\w.\-]+", "_", Path(request.model.rstrip("/")).name, flags=re.UNICODE).strip("._") or "model"
    path = Path(request.output) if request.output else Path(f"{name}.profile.json")
    path = path.absolute()
    probe = path.with_name(f".{path.name}.writable")
    try:
        if path.is_dir():
            raise UsageError(f"--output {path} is a directory: name a file")
        if path.exists() and not (path.is_file() and is_profile_or_empty(path)):
            raise UsageError(f"--output {path} exists and is no profile: it would be lost, name another file")
        path.parent.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise UsageError(f"--output: {path.parent} cannot be written ({error.strerror}): name another place") from error
    return path


def is_profile_or_empty(path: Path) -> bool:
    """Say whether a file may be replaced by a profile."""
    if path.stat().st_size > LIMIT_BYTES:
        return False
    content = path.read_bytes()
    return not content.strip() or looks_like_profile(content)
