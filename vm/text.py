"""Text of others (guests, images, programs) as it may stand in a message."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return the characters of `text` that can be printed: no control, nothing that acts.

    The caller bounds the length.
    """
    return "".join(character for character in text if character.isprintable())
