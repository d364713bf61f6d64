"""Reads a profile and finds its artifact files; a profile is data that may come from a stranger."""

import json
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from tuner.artifacts.store import sha256_of
from tuner.environment import check_env
from tuner.errors import ProfileMismatch, UsageError
from tuner.hardware import libraries
from tuner.loading.native import native_code
from tuner.loading.passwords import has_password
from tuner.records.config import ProcessSettings
from tuner.records.profile import PROFILE_SCHEMA, ArtifactFile, Profile

_CONTROL = re.compile(r"[\x01-\x08\x0b-\x1f\x7f-\x9f]")
LIMIT_BYTES = 64 * 1024 * 1024


def looks_like_profile(content: bytes) -> bool:
    """Say whether the content of a file names the schema of a profile, of any version."""
    return b'"tuner.profile/' in content


def read_profile(path: Path) -> Profile:
    """Read and check a profile.

    Raises:
        UsageError: No such file, not a profile, another schema, or something in it that no profile may hold.
    """
    try:
        if path.stat().st_size > LIMIT_BYTES:
            raise UsageError(f"{path}: too large for a profile ({path.stat().st_size} bytes)")
        text = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"{path}: no such profile") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from error
    try:
        document = without_controls(json.loads(text, parse_constant=refuse_constant))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON ({error}); is it a profile written by autotune?") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != PROFILE_SCHEMA:
        raise UsageError(f"{path}: schema {schema!r} where {PROFILE_SCHEMA!r} is read; tune again with this version")
    profile = Profile.from_json(json.dumps(document), source=str(path))
    challenger = () if profile.challenger is None else (profile.challenger,)
    for holder in (profile.best, profile.baseline, profile.fallback, *challenger):
        check_process(holder.config.process)
    check_secrets(profile, path)
    for file in profile.best.artifacts:
        check_relative(file.path)
    return profile


def without_controls(value: object) -> object:
    """Return a JSON value whose texts hold no control characters but tabs and line ends: what is shown steers nothing.

    Messages of engines may hold colours, and a stranger's profile may hold worse.
    """
    if isinstance(value, str):
        return _CONTROL.sub("", value)
    if isinstance(value, list):
        return [without_controls(item) for item in value]
    if isinstance(value, dict):
        return {_CONTROL.sub("", key): without_controls(item) for key, item in value.items()}
    return value


def refuse_constant(name: str) -> None:
    """Refuse NaN and infinities, which JSON does not have.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"{name} is no JSON")


def check_process(process: ProcessSettings, where: str = "the profile") -> None:
    """Refuse process settings that nothing a user was given may hold; `where` names it.

    Raises:
        UsageError: A variable or value that is not listed; a library that is a path or no known name.
    """
    check_env(process.env)
    for field, name, known in (
        ("allocator", process.allocator, libraries.ALLOCATORS),
        ("openmp_runtime", process.openmp_runtime, libraries.OPENMP_RUNTIMES),
    ):
        if name is not None and name not in known:
            raise UsageError(f"process.{field} {name[:60]!r} in {where}: only a name is allowed ({', '.join(known)})")


def check_secrets(profile: Profile, path: Path) -> None:
    """Refuse a profile with a password in its command: profiles are copied and shared.

    Raises:
        UsageError: There is one; it is not repeated.
    """
    if any(map(has_password, (*profile.command, *map(str, (profile.request or {}).values())))):
        raise UsageError(f"{path}: the command in the profile holds a password; take it out (and change it)")


def check_relative(path: str) -> None:
    """Refuse an artifact path that could leave its directory.

    Raises:
        UsageError: Absolute, empty, with ``..`` or a backslash.
    """
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path or "\x00" in path:
        raise UsageError(f"artifact path {path!r} in the profile: only relative paths without `..` are allowed")


def find_artifacts(
    profile: Profile,
    bases: Iterable[Path],
    *,
    full: bool = True,
    own: Path | None = None,
    trust_native: bool = False,
) -> Path | None:
    """Return the artifact directory of the best config, each file's digest checked; None where nothing is built.

    Args:
        profile: The profile whose best config is to be opened.
        bases: Directories that the paths may be relative to, in order: the profile's own, the cache.
        full: Whether digests are computed, or only sizes compared.
        own: Our cache directory: the one place from which native code is opened.
        trust_native: Open native code from any of the places (--trust-profile).

    Raises:
        ProfileMismatch: A file is missing, links out of its base or has another content.
    """
    files = profile.best.artifacts
    if not files:
        return None
    problem = "no directory to look in"
    for base in bases:
        problem_here = next((text for file in files if (text := file_problem(base, file, full=full))), None)
        if problem_here is None and not trust_native:
            problem_here = native_code(base, files, own)
        if problem_here is None:
            return artifact_directory(base, files)
        problem = problem_here
    raise ProfileMismatch(
        f"artifact of the profile: {problem}; tune again here, or copy profile and artifacts together"
    )


def file_problem(base: Path, file: ArtifactFile, *, full: bool) -> str | None:
    """Return what is wrong with one artifact file below `base`, None if nothing."""
    check_relative(file.path)
    path = base / file.path
    try:
        resolved = path.resolve(strict=True)
        if not resolved.is_relative_to(base.resolve()):
            return f"{path} links out of {base}"
        if resolved.stat().st_size != file.bytes:
            return f"{path} has {resolved.stat().st_size} bytes where the profile says {file.bytes}"
        if full and sha256_of(resolved) != file.sha256:
            return f"{path} has another content than the profile says (sha256)"
    except OSError as error:
        return f"{path}: {error.strerror}"
    return None


def artifact_directory(base: Path, files: Iterable[ArtifactFile]) -> Path:
    """Return the directory that holds all `files`: the deepest one they share."""
    parents = [PurePosixPath(file.path).parent.parts for file in files]
    shared = parents[0]
    for parts in parents[1:]:
        shared = shared[
            : next(
                (i for i, (a, b) in enumerate(zip(shared, parts, strict=False)) if a != b), min(len(shared), len(parts))
            )
        ]
    return base.joinpath(*shared)
