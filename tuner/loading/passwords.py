"""Finds the passwords in URLs and hides them; a profile holds none."""

import re

__all__ = ["has_password", "without_passwords"]

_PASSWORD = re.compile(
    r"(://[^/\s:@]*:)(?!\*+@)[^\s@]+(?=@)|([?&]\w*(?:password|passwd|pwd)=)(?!\*+(?:[&\s]|$))[^&\s]+", re.IGNORECASE
)


def has_password(text: str) -> bool:
    """Say whether a URL in `text` holds a password, before its host or among its options; asterisks are none."""
    return _PASSWORD.search(text) is not None


def without_passwords(text: str) -> str:
    """Return `text` with the passwords in its URLs as asterisks."""
    return _PASSWORD.sub(r"\1\2***", text)
