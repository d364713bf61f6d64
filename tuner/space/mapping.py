"""Turns points into configurations and back; it judges neither."""

from collections.abc import Mapping

from tuner.records.base import Scalar
from tuner.records.config import Config, ProcessSettings, StepSettings
from tuner.space.parameters import Value
from tuner.space.tables import CHAIN
from tuner.space.walking import Point, ResolvedBackend

__all__ = ["config_of", "point_of", "process_of"]

_PLACEMENT = "process.placement."
_ENV = "process.env."
_ABSENT = {
    "process.placement.core_class": "any",
    "process.allocator": "default",
    "process.openmp_runtime": "default",
}
"""Words for what a configuration leaves out: TOML has no null."""


def config_of(backend: ResolvedBackend, point: Mapping[str, Value]) -> Config:
    """Return the configuration of a canonical point of `backend`."""
    steps = backend.chains[str(point[CHAIN])]
    return Config(
        backend=backend.name,
        artifact=tuple(StepSettings(step=step, settings=_under(f"artifact.{step}.", point)) for step in steps),
        session=_under("session.", point),
        process=process_of(point),
    )


def process_of(point: Mapping[str, Value]) -> ProcessSettings:
    """Return the process settings that a point asks for; an environment variable with an empty value is left out."""
    present = {name: None if value == _ABSENT.get(name) else value for name, value in point.items()}
    rest = {
        name.removeprefix("process."): value
        for name, value in present.items()
        if name.startswith("process.") and not name.startswith((_PLACEMENT, _ENV))
    }
    env = {name: _env_text(value) for name, value in _under(_ENV, point).items() if value != ""}
    return ProcessSettings.model_validate({"placement": _under(_PLACEMENT, present), "env": env, **rest})


def point_of(backend: ResolvedBackend, config: Config) -> Point | None:
    """Return the point whose configuration is `config`, None if there is none; rules are not looked at."""
    steps = tuple(step.step for step in config.artifact)
    chain = next((name for name, chain in backend.chains.items() if chain == steps), None)
    if chain is None:
        return None
    names: dict[str, object] = dict(backend.facts)
    point: Point = {"backend": backend.name}
    for parameter in backend.parameters:
        names[CHAIN] = chain
        if not backend.is_active(parameter, names):
            continue
        wanted = chain if parameter.name == CHAIN else _read(config, parameter.name)
        value = parameter.domain.find(wanted)
        if value is None and parameter.name.startswith(_ENV):
            value = next((member for member in parameter.domain.values if _env_text(member) == wanted), None)
        if value is None:
            return None
        point[parameter.name] = names[parameter.name] = value
    return point if config_of(backend, point) == config else None


def _read(config: Config, name: str) -> Scalar:
    """Return what `config` says of a parameter, in the words of a search space."""
    root, _, rest = name.partition(".")
    found: Scalar
    if root == "artifact":
        step, _, key = rest.partition(".")
        found = next((item.settings.get(key) for item in config.artifact if item.step == step), None)
    elif root == "session":
        found = config.session.get(rest)
    elif name.startswith(_ENV):
        found = config.process.env.get(name.removeprefix(_ENV), "")
    elif name.startswith(_PLACEMENT):
        found = getattr(config.process.placement, name.removeprefix(_PLACEMENT))
    else:
        found = getattr(config.process, rest)
    return _ABSENT.get(name) if found is None else found


def _under(prefix: str, point: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {name.removeprefix(prefix): value for name, value in point.items() if name.startswith(prefix)}


def _env_text(value: Scalar) -> str:
    return ("1" if value else "0") if isinstance(value, bool) else str(value)
