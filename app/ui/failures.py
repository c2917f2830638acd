"""Errors as the user meets them: one sentence and the next step, printable and bounded."""

from __future__ import annotations

from snapshot.safe_text import safe_name

PROGRAMS = ("cloche", "sudo", "./run", "CLOCHE_DEBUG=1")
"""What a hint that is nothing but a command begins with."""

LONGEST = 4000
"""Characters of a sentence; what is longer belongs into a log."""


def command_of(hint: str) -> str:
    """Return the command that a hint names after a colon or is itself, or an empty text."""
    before, colon, after = hint.partition(": ")
    text = after if colon and "`" not in before else hint
    text = text.strip().strip("`").removesuffix(".")
    first = text.split(" ", 1)[0]
    return text if colon or first in PROGRAMS else ""


def told(error: BaseException) -> tuple[str, str]:
    """Return sentence and hint of an error of any of our packages, or of an unexpected one."""
    message = str(getattr(error, "message", "") or error or type(error).__name__)
    hint = str(getattr(error, "hint", ""))
    return safe_name(message).text[:LONGEST], safe_name(hint).text[:LONGEST]
