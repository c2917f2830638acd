"""Output comes in pieces that end anywhere; what looks for sequences in it wants them whole.

A character or control sequence that a piece cuts waits here for its rest. The engine would show
nothing of it either until then. Only short beginnings wait: strings (titles, clipboards) do not.
"""

from __future__ import annotations

import re

LONGEST = 40
"""Bytes of parameters that a waiting sequence may have."""

UNFINISHED = re.compile(
    rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2}"
    rb"|\x1b(?:\[[?0-9;:!]{0,%d})?)\Z" % LONGEST
)
"""The beginning of a character or of a control sequence at the end of a piece."""

SWITCHES = re.compile(rb"\x1b\[\?([0-9;]*)h")
WIDTH_SWITCH = 40
"""The private mode that lets a guest choose 80 or 132 columns (by mode 3)."""


class Pieces:
    """Joins what was cut."""

    def __init__(self) -> None:
        self._rest = b""

    def whole(self, data: bytes) -> bytes:
        """Return what waited and `data`, without what is now unfinished."""
        if self._rest:
            data = self._rest + data
        cut = UNFINISHED.search(data, max(0, len(data) - LONGEST - 3))
        end = cut.start() if cut else len(data)
        self._rest = data[end:]
        return data[:end]


def fixed_width(data: bytes) -> bytes:
    """Return output in which no guest asks for another width: its size is not its own to choose.

    Taking the width back afterwards would come too late for text in the same piece, and each
    change wraps the whole scrollback anew, which a guest could ask for without end.
    """
    return SWITCHES.sub(_without_width, data) if b"40" in data else data


def _without_width(found: re.Match[bytes]) -> bytes:
    modes = found[1].split(b";")
    kept = [mode for mode in modes if int(mode or b"0") != WIDTH_SWITCH]
    if len(kept) == len(modes):
        return found[0]
    return b"\x1b[?%sh" % b";".join(kept) if kept else b""
