"""What the host gives this process, where workers are placed on it, and what a change of host means."""

from tuner.hardware.detection import detect

__all__ = ["detect"]
