"""What a guest's output may do to the user's own terminal while it is attached.

Colours, cursor, modes, titles and links to the web pass. What acts on the terminal itself or on the
user's machine does not: clipboard (OSC 52), notifications and file transfers of all kinds, device
control strings, graphics, printing, and questions about the title, whose answer would be typed as
input.

Terminals differ in how they read what no standard program sends: a string that another sequence
cuts short, a control character within a sequence, controls of eight bits. None of that passes, so
what passes is read by all of them as it is read here.
"""

from __future__ import annotations

import re
from typing import Final

from vm.terminal.pieces import Pieces
from vm.terminal.screen import link_address

COLORS: Final = frozenset({b"4", b"10", b"11", b"12"})
"""Palette and default colours, which a program may change and leave changed."""

ALLOWED_OSC: Final = COLORS | {b"0", b"1", b"2", b"8", b"104", b"110", b"111", b"112", b"133"}
"""Titles, hyperlinks and prompt marks as well."""

MAX_STRING: Final = 8192
"""Longest string sequence that is kept waiting for its end; a longer one is dropped."""

COLORS_BACK: Final = b"\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\"
"""Gives the terminal its own colours back."""

_LINK: Final = b"8"
_LINK_END: Final = b"\x1b]8;;\x1b\\"

_START: Final = re.compile(rb"\x1b(?:[\]PX^_]|\[[ -?]*[ti]|%[ -/]*[0-~])")
"""A string, or what acts on the window (t), prints (i) or leaves UTF-8 (ESC %)."""

_END: Final = re.compile(rb"\x07|\x1b\\|\x18|\x1a|(?=\x1b[^\\])")
"""Another sequence ends a string as well, and is read itself."""

_GOOD_ENDS: Final = (b"\x07", b"\x1b\\")
_WINDOW: Final = re.compile(rb"\x1b\[(?:18|2[23](?:;[0-9;]*)?)t")
"""18t asks for the size in cells, 22t and 23t keep and restore titles; others move windows, resize
them or make the terminal type their titles."""

_EIGHT_BITS: Final = re.compile("[\x80-\x9f]")


class OutputFilter:
    """Drops from a stream of output what is not harmless."""

    def __init__(self) -> None:
        self._pieces = Pieces()
        self._waiting = b""
        self._dropping = False
        self.colored = False
        """The guest changed the terminal's own colours."""

    def feed(self, data: bytes) -> bytes:
        """Return what may be written now; an unfinished sequence waits for the next call."""
        data = self._pieces.whole(data.replace(b"\x7f", b""))
        if not data.isascii():
            data = _EIGHT_BITS.sub("", data.decode("utf-8", "replace")).encode()
        data, self._waiting = self._waiting + data, b""
        passed = bytearray()
        at = 0
        while at < len(data):
            if self._dropping:
                at = self._skip(data, at)
                continue
            start = _START.search(data, at)
            if start is None:
                return bytes(passed + data[at:])
            passed += data[at : start.start()]
            if data[start.start() + 1] in b"[%":
                passed += start[0] if _WINDOW.fullmatch(start[0]) else b""
                at = start.end()
            else:
                at = self._string(data, start.start(), passed)
        return bytes(passed)

    def _skip(self, data: bytes, at: int) -> int:
        """Pass over the rest of a string; return where it ends."""
        end = _END.search(data, at)
        self._dropping = end is None
        return len(data) if end is None else end.end()

    def _string(self, data: bytes, at: int, passed: bytearray) -> int:
        """Take the string sequence at a place; return where to go on."""
        end = _END.search(data, at + 2)
        if end is not None:
            if data[at + 1] == ord("]") and end[0] in _GOOD_ENDS:
                passed += self._command(data[at + 2 : end.start()], data[at : end.end()])
            return end.end()
        if len(data) - at > MAX_STRING:
            self._dropping = True
        else:
            self._waiting = data[at:]
        return len(data)

    def _command(self, text: bytes, whole: bytes) -> bytes:
        """Return what passes of an operating system command."""
        number, _, rest = text.partition(b";")
        if number == _LINK:
            address = rest.partition(b";")[2]
            return whole if not address or link_address(address) else _LINK_END
        self.colored |= number in COLORS and not rest.endswith(b"?")
        return whole if number in ALLOWED_OSC else b""
