"""Tuning: `tune` runs the whole line from a request to a profile."""

from tuner.tuning.line import TuneResult, tune

__all__ = ["TuneResult", "tune"]
