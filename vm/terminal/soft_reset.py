"""The soft reset (DECSTR, `CSI ! p`), which the engine does not know.

`tput init` and shells that recover from a broken program send it. The engine passes over the
sequence; what a soft reset means is written after it, in sequences that the engine does know. An
escape character begins a new sequence wherever it stands (in strings too), so finding the four
bytes is enough; a piece of output may end within them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SEQUENCE = b"\x1b[!p"

MEANING = (
    b"\x1b[?69l\x1b[?6l\x1b[r\x1b[4l"  # margins, origin mode, insert mode
    b"\x1b[?25h\x1b[?7h\x1b[?1l\x1b>"  # cursor shown, autowrap, normal cursor keys and keypad
    b"\x1b(B\x1b)B\x1b*B\x1b+B\x0f"  # character sets
    b'\x1b[m\x1b[0"q\x1b[0$}'  # style, protection, output to the page
    b"\x1b[H\x1b7"  # what DECRC restores from now on: the upper left corner, nothing special
)
"""What DEC's manual of the VT510 lists for DECSTR, with autowrap on as in xterm."""


def after(column: int, row: int) -> bytes:
    """Return what performs a soft reset with the cursor (from 0) left where it is."""
    return MEANING + b"\x1b[%d;%dH" % (row + 1, column + 1)


class Finder:
    """Finds the ends of soft resets in output that comes in pieces."""

    def __init__(self) -> None:
        self._tail = b""

    def ends(self, data: bytes) -> Iterator[int]:
        """Yield where in `data` soft resets end."""
        tail = self._tail
        keep = len(SEQUENCE) - 1
        self._tail = data[-keep:] if len(data) >= keep else (tail + data)[-keep:]
        if tail and (at := (tail + data[:keep]).find(SEQUENCE)) >= 0:
            yield at + len(SEQUENCE) - len(tail)
        at = data.find(SEQUENCE)
        while at >= 0:
            yield at + len(SEQUENCE)
            at = data.find(SEQUENCE, at + len(SEQUENCE))
