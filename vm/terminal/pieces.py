"""Output comes in pieces that end anywhere; what looks for sequences in it wants them whole.

A character or control sequence that a piece cuts waits here for its rest. The engine would show
nothing of it either until then. Only short beginnings wait: strings (titles, clipboards) do not.

What looks for sequences also wants them written in one way. A terminal obeys a control character
within a sequence (`ESC [ 1 LF ; 3 r`), and the engine takes the bytes 0x80 … 0x9f there as controls
of eight bits (`ESC 0x9b`), even where they belong to a character. So control characters go ahead
of the sequence that they stand in, and within sequences, and strings that nobody reads, nothing
but ASCII is left.
"""

from __future__ import annotations

import re

LONGEST = 256
"""Bytes of a sequence that may wait; of a longer one the rest is dropped. Thirty parameters are
more than the engine takes."""

CHARACTER = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
"""The beginning of a character at the end of a piece."""

SEQUENCE = re.compile(rb"\x1b(?:\[[ -?]*|[ -/]*)\Z")
"""The beginning of a control sequence."""

CONTROL, HIGH = rb"\x00-\x17\x19\x1c-\x1f", rb"\x80-\xff"
"""What does not end a sequence (CAN, SUB and ESC do) and does not belong to it."""

MIXED = re.compile(
    rb"\x1b(?=[ -/]*[%(odd)b]|\[[ -?]*[%(odd)b])[%(odd)b]*(?:\[[ -?%(odd)b]*|[ -/%(odd)b]*)"
    % {b"odd": CONTROL + HIGH}
)
"""A sequence, up to its last byte, with other bytes in it."""

CONTROLS, OTHERS = bytes((*range(0x18), 0x19, *range(0x1C, 0x20))), bytes(range(0x80, 0x100))

SAME = bytes(0 if byte in CONTROLS or byte > 0x7F else byte for byte in range(256))
PARAMETERS = bytes(range(0x20, 0x40))
SUSPECTS = (b"\x1b\0", b"\x1b[\0")
"""What `MIXED` becomes when other bytes are made one and parameters left out; looking for that is
six times faster."""

MUTE = b"PX^_"
"""What begins the strings that nobody reads beyond ASCII: DCS, SOS, PM, APC."""

STRING = re.compile(rb"\x1b[PX^_][^\x1b\x18\x1a]*")
STRING_REST = re.compile(rb"[^\x1b\x18\x1a]*")
ENDS = (b"\x18", b"\x1a")

SWITCHES = re.compile(rb"\x1b\[\?([0-9;]*)h")
WIDTH_SWITCH = b"40"
"""The private mode that lets a guest choose 80 or 132 columns (by mode 3)."""


class Pieces:
    """Joins what was cut, and writes sequences in one way."""

    def __init__(self) -> None:
        self._rest = b""
        self._mute = False

    def whole(self, data: bytes) -> bytes:
        """Return what waited and `data`, without what is now unfinished."""
        if self._rest:
            data = self._rest + data
        bare = data.translate(SAME, PARAMETERS)
        if any(suspect in bare for suspect in SUSPECTS):
            data = MIXED.sub(_apart, data)
        if not data.isascii():
            data = self._in_ascii(data)
        escape = data.rfind(b"\x1b")
        cut = SEQUENCE.match(data, escape) if escape >= 0 else None
        cut = cut or CHARACTER.search(data, max(0, len(data) - 3))
        end = cut.start() if cut else len(data)
        self._rest = data[end : end + LONGEST]
        data = data[:end]
        self._mute = self._ends_mute(data)
        return data

    def _in_ascii(self, data: bytes) -> bytes:
        """Take out of mute strings what is not ASCII."""
        if self._mute:
            rest = STRING_REST.match(data)
            end = rest.end() if rest else 0
            data = data[:end].translate(None, OTHERS) + data[end:]
        return STRING.sub(lambda found: found[0].translate(None, OTHERS), data)

    def _ends_mute(self, data: bytes) -> bool:
        """Tell whether the output so far ends within a mute string."""
        begin = data.rfind(b"\x1b")
        mute = self._mute if begin < 0 else data[begin + 1 : begin + 2] in MUTE
        return mute and not any(end in data[begin + 1 :] for end in ENDS)


def _apart(found: re.Match[bytes]) -> bytes:
    sequence = found[0].translate(None, OTHERS)
    controls = bytes(byte for byte in sequence[1:] if byte in CONTROLS)
    return controls + sequence.translate(None, CONTROLS)


def fixed_width(data: bytes) -> bytes:
    """Return output in which no guest asks for another width: its size is not its own to choose.

    Taking the width back afterwards would come too late for text in the same piece, and each
    change wraps the whole scrollback anew, which a guest could ask for without end.
    """
    return SWITCHES.sub(_without_width, data) if b"40" in data else data


def _without_width(found: re.Match[bytes]) -> bytes:
    modes = found[1].split(b";")
    kept = [mode for mode in modes if mode.lstrip(b"0") != WIDTH_SWITCH]
    if len(kept) == len(modes):
        return found[0]
    return b"\x1b[?%sh" % b";".join(kept) if kept else b""
