"""Puts what an engine says into one line; it adds nothing of its own."""

HEAD_SHARE = 4
"""One part of this many is kept of the start of a long text; engines put the reason at the end."""


def one_line(error: BaseException, limit: int = 300) -> str:
    """Return the text of `error` on one line, at most `limit` characters: its start and, mostly, its end."""
    text = " ".join(str(error).split()) or type(error).__name__
    if len(text) <= limit:
        return text
    head = limit // HEAD_SHARE
    return f"{text[:head]} … {text[len(text) - (limit - head - 3) :]}"
