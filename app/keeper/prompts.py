"""A prompt as keys: what `cloche send` types into the agent's terminal.

One line is typed as it stands. Several lines are one bracketed paste where the agent's program
asked for pastes to be marked, else each line is entered by itself, as pasting into such a program
does. Enter comes last, once.
"""

from __future__ import annotations

import re
from typing import Final

from app.errors import AppError

MAX_PROMPT: Final = 256 << 10
"""Bytes of one prompt; more than this goes into the guest as a file (`cloche cp`)."""

PASTE_BEGIN, PASTE_END, ENTER = b"\x1b[200~", b"\x1b[201~", b"\r"

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Everything that a terminal's program could take for a key but tab and newline."""


def clean_prompt(text: str) -> str:
    """Return a prompt with one kind of line end and none at its end.

    Raises AppError `usage` for one that is empty, too long, or has keys in it.
    """
    text = text.replace("\r\n", "\n").strip("\n")
    if not text.strip():
        raise AppError("usage", "There is nothing to send.", "cloche send ID TEXT")
    if len(text.encode(errors="replace")) > MAX_PROMPT:
        raise AppError(
            "usage",
            f"A prompt has at most {MAX_PROMPT >> 10} KiB.",
            "Put it into the guest and name it: cloche cp FILE ID:/tmp/",
        )
    if found := _CONTROL.search(text):
        code = f"U+{ord(found[0]):04X}"
        raise AppError("usage", f"The text has the control character {code} in it.", "Remove it.")
    return text


def keys_of(text: str, *, pastes: bool) -> bytes:
    """Return the bytes that type a clean prompt and submit it; `pastes`: they are asked for."""
    data = text.encode()
    if b"\n" not in data:
        return data + ENTER
    if pastes:
        return PASTE_BEGIN + data.replace(b"\n", b"\r") + PASTE_END + ENTER
    return data.replace(b"\n", ENTER) + ENTER
