"""Pastes as a guest gets them: no control characters, paste marks where it asked for them.

A long paste comes in pieces. What a paste must not hold is taken out of it wherever the pieces were
cut, and all of it lies between one pair of marks, even if the guest changes its mind meanwhile.
"""

from __future__ import annotations

import re

CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""What no paste may hold: a guest would take it for a key or for the end of the paste. Without the
escape character there is no end mark either, whole or cut in two."""

PASTE_MODE = 2004
BEGIN, END = b"\x1b[200~", b"\x1b[201~"
"""Bracketed paste: the private mode that asks for it, and its marks."""


class Paste:
    """The pastes of one terminal, one after the other."""

    def __init__(self) -> None:
        self._open = False
        self._bracketed = False
        self._after_return = False

    def piece(self, text: str, *, begin: bool, end: bool, bracketed: bool) -> bytes:
        """Return what a piece sends; `bracketed` says what the guest wants now.

        A piece after the end, or a beginning inside a paste, is a paste of its own.
        """
        sent = b""
        if begin or not self._open:
            sent = self._finish() + self._start(bracketed=bracketed)
        sent += self._clean(text)
        return sent + self._finish() if end else sent

    def _start(self, *, bracketed: bool) -> bytes:
        self._open, self._bracketed, self._after_return = True, bracketed, False
        return BEGIN if bracketed else b""

    def _finish(self) -> bytes:
        if not self._open:
            return b""
        self._open = False
        return END if self._bracketed else b""

    def _clean(self, text: str) -> bytes:
        """Return the text with each line end as one: CR, which is Enter, or LF between marks."""
        if self._after_return and text.startswith("\n"):
            text = text[1:]  # the piece before ended within CR LF
            self._after_return = False
        if text:
            self._after_return = text.endswith("\r")
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        clean = CONTROLS.sub(" ", lines)
        return (clean if self._bracketed else clean.replace("\n", "\r")).encode("utf-8", "replace")
