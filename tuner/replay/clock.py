"""Virtual time; it never looks at a real clock."""


class VirtualClock:
    """Time that passes only when somebody says so."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def now(self) -> float:
        """Return virtual seconds."""
        return self._now_s

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self._now_s += max(0.0, seconds)
