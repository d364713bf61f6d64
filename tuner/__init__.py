"""autotune: finds the fastest trustworthy way to run a model on CPUs; importing this package loads nothing heavy."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuner.errors import (
        HostError,
        NoFeasibleTrial,
        ProfileMismatch,
        TunerError,
        UsageError,
    )
    from tuner.loading import Model, load
    from tuner.records.profile import Profile
    from tuner.tuning import tune

__version__ = "0.1.0"

_HOMES = {
    "HostError": "tuner.errors",
    "Model": "tuner.loading",
    "NoFeasibleTrial": "tuner.errors",
    "Profile": "tuner.records.profile",
    "ProfileMismatch": "tuner.errors",
    "TunerError": "tuner.errors",
    "UsageError": "tuner.errors",
    "load": "tuner.loading",
    "tune": "tuner.tuning",
}

__all__ = [
    "HostError",
    "Model",
    "NoFeasibleTrial",
    "Profile",
    "ProfileMismatch",
    "TunerError",
    "UsageError",
    "load",
    "tune",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
