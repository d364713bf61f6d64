"""Loading a profile: `load` gives a Model; it never tunes and never builds."""

from tuner.loading.model import Model
from tuner.loading.opening import load

__all__ = ["Model", "load"]
