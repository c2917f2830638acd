"""Takes the engine's packed cells apart and makes their text safe for drawing.

A row comes as packed 64-bit cells. A row without wide characters and clusters (nearly every one) is
taken apart with arithmetic on one big number, so no Python code runs for a single cell: 0.6 ms for
40 rows of 120 columns, where a loop over cells takes 6 ms.

Each cluster becomes characters that every terminal draws in exactly its cells (no joiners,
variation selectors or skin tones; flags become letters), for outer terminals disagree on the rest
and one wrong width shifts everything to its right.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from vm.terminal.drawable import drawable
from vm.terminal.screen import MAX_CLUSTER_TEXT

CELL_BITS = {
    "content_tag": (0, 2),
    "content": (2, 24),
    "style_id": (26, 16),
    "wide": (42, 2),
    "hyperlink": (45, 1),
}
"""Fields of a packed cell (first bit, width); the library is asked for them when it is loaded."""

CONTENT_SHIFT, STYLE_SHIFT, WIDE_SHIFT, LINK_SHIFT = (
    CELL_BITS[name][0] for name in ("content", "style_id", "wide", "hyperlink")
)
TAG, POINT, STYLE = 0x3, 0x1FFFFF, 0xFFFF
"""Masks of fields: what a cell holds, its code point (the low bits of `content`), its style."""

CLUSTER, FILL_INDEX = 1, 2
"""Tags: several code points; from here on a background colour without text (by index, by RGB)."""

WIDE, TAIL, SPACER = 1, 2, 3
"""Kinds in `wide`: first and second half of a wide character; the last cell of a row that one would
not fit in."""

SPECIAL = TAG | 3 << WIDE_SHIFT
"""Bits of a cell that are set unless it holds one narrow character."""

LONG_DASHES = "\u2e3a\u2e3b"
"""Two or three dashes long as drawn, one or two cells as terminals count."""

FLAG_A, FLAG_Z = "\U0001f1e6", "\U0001f1ff"
SKIN_A, SKIN_Z = "\U0001f3fb", "\U0001f3ff"


class Masks(NamedTuple):
    """Big numbers for one row width, a field of each cell."""

    special: int
    point: int
    style: int
    link: int


@functools.cache
def masks(width: int) -> Masks:
    """Return the fields of `width` cells side by side in one number."""
    one = int.from_bytes(b"\1\0\0\0\0\0\0\0" * width, "little")
    return Masks(one * SPECIAL, one * POINT, one * (STYLE << STYLE_SHIFT), one << LINK_SHIFT)


def _is_plumbing(character: str) -> bool:
    """Tell joiners, variation selectors, skin tones and other invisible parts of a cluster."""
    return (
        "\ufe00" <= character <= "\ufe0f"
        or SKIN_A <= character <= SKIN_Z
        or not drawable(character)
    )


@functools.lru_cache(8192)
def safe_cluster(cluster: str, wide: bool) -> str:
    """Return a cluster without what outer terminals disagree on.

    A wide one keeps its first character (a flag its two letters); a narrow one its combining marks.
    """
    if FLAG_A <= cluster[0] <= FLAG_Z:
        letters = "".join(chr(ord(c) - 0x1F1A5) for c in cluster[:2] if FLAG_A <= c <= FLAG_Z)
        return letters.ljust(2) if wide else letters[:1]
    if wide:
        return cluster[0] if drawable(cluster[0]) else "\ufffd "
    kept = "".join(c for c in cluster if not _is_plumbing(c))
    return kept[:MAX_CLUSTER_TEXT] or "\ufffd"


@functools.lru_cache(8192)
def character(point: int, wide: bool) -> str:
    """Return what is drawn for one code point in its cells."""
    text = chr(point)
    if FLAG_A <= text <= FLAG_Z:  # half a flag: terminals disagree on how wide it is
        return safe_cluster(text, wide)
    if text in LONG_DASHES and wide:
        return "\u2014\u2014"
    if drawable(text):
        return text
    return "  " if wide else " " if text.isspace() else "\ufffd"


def plain_text(number: int, width: int) -> str | None:
    """Return the text of a row of narrow single characters, given as one number.

    None when the row holds anything else, or a character that must not be drawn.
    """
    fields = masks(width)
    if number & fields.special:
        return None
    points = (number >> CONTENT_SHIFT & fields.point).to_bytes(width * 8, "little")
    text = points.decode("utf-32-le", "replace")[::2].replace("\0", " ")
    return text if drawable(text) else None


@functools.lru_cache(16_384)
def _shared(point: int) -> str:
    """Return one object for all cells with a code point: many rows are kept."""
    return chr(point) if point else " "


def cell_texts(raw: bytes) -> tuple[str, ...]:
    """Return the text of each cell of a row, the first character of a cluster.

    Cells that belong to the wide character before them have none.
    """
    found: list[str] = []
    wide_before = False
    for cell in memoryview(raw).cast("Q").tolist():
        kind, tag = cell >> WIDE_SHIFT & 3, cell & TAG
        if kind == SPACER or (kind == TAIL and wide_before):
            found.append("")
        else:
            found.append(" " if tag >= FILL_INDEX else _shared(cell >> CONTENT_SHIFT & POINT))
        wide_before = kind == WIDE
    return tuple(found)
