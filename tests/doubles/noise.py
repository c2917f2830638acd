"""Random output of a guest: sequences with random numbers, awkward texts, cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

SEQUENCES = [
    b"\x1b[%d;%dH", b"\x1b[%d;%dr", b"\x1b[%d%dL", b"\x1b[%dM\x1b[%d@", b"\x1b[%dP\x1b[%dX",
    b"\x1b[?%dh\x1b[?%dl", b"\x1b[38;5;%dm\x1b[%dm", b"\x1b]4;%d;rgb:0/0/%d\x07",
    b"\x1b[%dS\x1b[%dT", b"\x1bPq%d;%d\x1b\\", b"\x1b_G%d;%d\x1b\\", b"\x1b[%dJ\x1b[%dK",
]  # fmt: skip
TEXTS = ["plain ", "漢字", "👨‍👩‍👧", "🇺🇸", "e\u0301\u0323", "\r\n", "\t", "\b\b", "\u200d", "नि"]


def noise(seed: random.Random) -> bytes:
    """Sixty sequences and texts, now and then cut short."""
    data = bytearray()
    for _ in range(60):
        if seed.random() < 0.5:
            data += seed.choice(SEQUENCES) % (seed.randrange(0, 130), seed.randrange(0, 130))
        else:
            data += seed.choice(TEXTS).encode() * seed.randrange(1, 30)
    return bytes(data[: seed.randrange(1, len(data))] if seed.random() < 0.2 else data)
