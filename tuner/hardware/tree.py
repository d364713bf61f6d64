"""Reads small kernel files below a root and collects notices; it gives no file a meaning."""

import os
import re
from pathlib import Path

from tuner.hardware.lists import parse_cpu_list
from tuner.records.measurement import Notice

_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)


class Tree:
    """Kernel files below `root`; names are relative, ``proc/meminfo``.

    Attributes:
        is_live: Whether `root` is the running system's own, so that system calls may be asked too.
        notices: What readers noted, each code and detail once.
    """

    def __init__(self, root: Path) -> None:
        self.root = str(root).rstrip("/") + "/"
        self.is_live = root.resolve() == Path("/")
        self.notices: list[Notice] = []

    def read(self, name: str) -> str | None:
        """Return the text of a file without surrounding space; None if it cannot be read."""
        try:
            with open(self.root + name, "rb") as stream:  # noqa: PTH123 - thousands of reads: Path is three times slower
                return stream.read().decode("utf-8", "replace").strip()
        except (OSError, ValueError):
            return None

    def integer(self, name: str) -> int | None:
        """Return a file's decimal integer; None if there is none."""
        text = self.read(name)
        return int(text) if text is not None and _INTEGER.fullmatch(text) else None

    def cpu_list(self, name: str) -> tuple[int, ...] | None:
        """Return a file's CPU list; None if it is missing or (with a notice) unreadable."""
        text = self.read(name)
        if text is None:
            return None
        try:
            return parse_cpu_list(text)
        except ValueError as error:
            self.odd_file(name, str(error))
            return None

    def children(self, name: str) -> tuple[str, ...]:
        """Return the names in a directory, sorted; none if it cannot be listed."""
        try:
            return tuple(sorted(os.listdir(self.root + name)))  # noqa: PTH208 - as in read
        except (OSError, ValueError):
            return ()

    def is_directory(self, name: str) -> bool:
        """Return whether a directory exists."""
        try:
            return os.path.isdir(self.root + name)  # noqa: PTH112 - as in read
        except ValueError:
            return False

    def note(self, code: str, detail: str, remedy: str | None = None) -> None:
        """Add a notice once."""
        notice = Notice(code=code, detail=detail, remedy=remedy)
        if notice not in self.notices:
            self.notices.append(notice)

    def odd_file(self, name: str, what: str) -> None:
        """Note a file whose text has no meaning and is left out."""
        self.note(
            "unreadable_file",
            f"/{name}: {what}; it is left out",
            "compare the figures of `autotune host` with the limits you expect here",
        )
