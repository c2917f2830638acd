"""Errors as the user meets them: one sentence and the next step, printable and bounded."""

from __future__ import annotations

from snapshot.safe_text import safe_name

LONGEST = 400
"""Characters of a sentence; what is longer belongs into a log."""


def told(error: BaseException) -> tuple[str, str]:
    """Return sentence and hint of an error of any of our packages, or of an unexpected one."""
    message = str(getattr(error, "message", "") or error or type(error).__name__)
    hint = str(getattr(error, "hint", ""))
    return safe_name(message).text[:LONGEST], safe_name(hint).text[:LONGEST]
