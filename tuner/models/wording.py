"""Puts what an engine says into one line, with the way out where it is known."""

import re

HEAD_SHARE = 4
"""One part of this many is kept of the start of a long text; engines put the reason at the end."""


def one_line(error: BaseException, limit: int = 300) -> str:
    """Return the text of `error` on one line, at most `limit` characters: its start and, mostly, its end."""
    text = " ".join(str(error).split()) or type(error).__name__
    if len(text) <= limit:
        return text
    head = limit // HEAD_SHARE
    return f"{text[:head]} … {text[len(text) - (limit - head - 3) :]}"


def refusal(engine: str, version: str, file: str, error: BaseException) -> str:
    """Return one line that says what `engine` refuses, why, and what helps if the file is newer than the engine."""
    text = one_line(error)
    too_new = re.search(r"Unsupported model IR version: \d+, max supported IR version: (\d+)", str(error))
    if too_new is not None:
        text = f"{too_new[0]}: update {engine}, or save the model again with ir_version={too_new[1]} or below"
    return f"{engine} {version} refuses {file}: {text}"
