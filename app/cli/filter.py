"""What a guest's output may do to the user's own terminal while it is attached.

Colours, cursor, modes, titles and hyperlinks pass. Strings that act on the terminal or on the
user's machine do not: clipboard (OSC 52), notifications and file transfers of all kinds, device
control strings, graphics, and questions about the title, whose answer would be typed as input.
"""

from __future__ import annotations

import re
from typing import Final

ALLOWED_OSC: Final = frozenset({b"0", b"1", b"2", b"4", b"8", b"10", b"11", b"12", b"104"}) | {
    b"110",
    b"111",
    b"112",
    b"133",
}
"""Titles, palette, hyperlinks, default colours and prompt marks."""

MAX_STRING: Final = 8192
"""Longest string sequence that is kept waiting for its end; a longer one is dropped."""

_START: Final = re.compile(rb"\x1b[\]PX^_]|\x1b\[[0-9;]*[t]")
_END: Final = re.compile(rb"\x07|\x1b\\|\x18|\x1a")
_PARTIAL: Final = re.compile(rb"\x1b(\[[0-?]{0,32}[ -/]{0,4})?\Z")


class OutputFilter:
    """Drops string sequences that are not harmless from a stream of output."""

    def __init__(self) -> None:
        self._waiting = b""
        self._dropping = False

    def feed(self, data: bytes) -> bytes:
        """Return what may be written now; an unfinished sequence waits for the next call."""
        data, self._waiting = self._waiting + data, b""
        passed = bytearray()
        while data:
            if self._dropping:
                data = self._skip(data)
                continue
            start = _START.search(data)
            if start is None:
                return bytes(passed + self._hold_back(data))
            passed += data[: start.start()]
            if start[0].endswith(b"t"):
                passed += start[0] if _harmless_window(start[0]) else b""
                data = data[start.end() :]
                continue
            data = self._string(data[start.start() :], passed)
        return bytes(passed)

    def _hold_back(self, data: bytes) -> bytes:
        partial = _PARTIAL.search(data)
        if partial is None:
            return data
        self._waiting = partial[0]
        return data[: partial.start()]

    def _skip(self, data: bytes) -> bytes:
        end = _END.search(data)
        if end is None:
            self._waiting = b"\x1b" if data.endswith(b"\x1b") else b""
            return b""
        self._dropping = False
        return data[end.end() :]

    def _string(self, data: bytes, passed: bytearray) -> bytes:
        """Take one string sequence off the front of `data`."""
        end = _END.search(data, 2)
        if end is not None:
            if data[1:2] == b"]" and data[2 : end.start()].split(b";")[0] in ALLOWED_OSC:
                passed += data[: end.end()]
            return data[end.end() :]
        if len(data) > MAX_STRING:
            self._dropping = True
            return data[2:]
        self._waiting = data
        return b""


def _harmless_window(sequence: bytes) -> bool:
    # 18t asks for the size in cells, 22t and 23t keep and restore titles; others move windows,
    # resize them or make the terminal type their titles
    return sequence[2:-1].split(b";")[0] in (b"18", b"22", b"23")
