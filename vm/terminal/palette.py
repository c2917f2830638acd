"""The colours that a guest is told when it asks (OSC 4, 10, 11, 12)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

RGB = tuple[int, int, int]
"""Red, green and blue, each 0 … 255."""

ANSI_DEFAULT: tuple[RGB, ...] = (
    (0x1D, 0x1F, 0x21), (0xCC, 0x66, 0x66), (0x8F, 0xA8, 0x58), (0xD9, 0xAA, 0x52),
    (0x6A, 0x93, 0xC4), (0xA8, 0x80, 0xB8), (0x6F, 0xAF, 0xA8), (0xC5, 0xC8, 0xC6),
    (0x6B, 0x70, 0x75), (0xE0, 0x7F, 0x7F), (0xA9, 0xC4, 0x6C), (0xEC, 0xC4, 0x74),
    (0x8A, 0xB0, 0xDD), (0xC0, 0x9C, 0xD0), (0x8C, 0xC8, 0xC0), (0xEA, 0xEA, 0xEA),
)  # fmt: skip
"""The sixteen ANSI colours when no theme says otherwise."""


@dataclass(frozen=True, slots=True)
class TerminalPalette:
    """Default colours of a terminal; the view draws the same ones."""

    foreground: RGB = (0xD8, 0xD8, 0xD8)
    background: RGB = (0x16, 0x18, 0x1C)
    cursor: RGB = (0xD8, 0xD8, 0xD8)
    ansi: tuple[RGB, ...] = ANSI_DEFAULT
    """Colours 0 … 15; 16 … 255 are the usual cube and grey ramp."""

    def __post_init__(self) -> None:
        """Refuse anything but sixteen ANSI colours of three bytes each."""
        if len(self.ansi) != 16:
            raise ValueError(f"a palette has 16 ANSI colours, not {len(self.ansi)}")
        self.pack()

    def pack(self) -> bytes:
        """Return 57 bytes: foreground, background, cursor, then the sixteen colours."""
        flat = [part for rgb in (self.foreground, self.background, self.cursor, *self.ansi)
                for part in rgb]  # fmt: skip
        try:
            return struct.pack("57B", *flat)
        except struct.error as error:
            raise ValueError("a colour has three parts of 0 … 255") from error

    @classmethod
    def unpack(cls, data: bytes) -> TerminalPalette:
        """Read what `pack` wrote; ValueError when it has another length."""
        if len(data) != PACKED_SIZE:
            raise ValueError(f"a packed palette has {PACKED_SIZE} bytes, not {len(data)}")
        colours = [(data[i], data[i + 1], data[i + 2]) for i in range(0, PACKED_SIZE, 3)]
        return cls(colours[0], colours[1], colours[2], tuple(colours[3:]))


PACKED_SIZE = 57
"""Bytes of a packed palette: nineteen colours of three bytes."""


def all_colors(palette: TerminalPalette) -> tuple[RGB, ...]:
    """Return 256 colours: the palette's sixteen, xterm's cube of 6x6x6, its 24 greys."""
    levels = (0, 95, 135, 175, 215, 255)
    cube = tuple((r, g, b) for r in levels for g in levels for b in levels)
    greys = tuple((v, v, v) for v in range(8, 248, 10))
    return palette.ansi + cube + greys
