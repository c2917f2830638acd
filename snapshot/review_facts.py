"""Facts about a diff for the screen's chips: endings, byte order mark, encoding, spans."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .lines import CRLF, ENDING_NAMES, LF, ending, has_bom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .hunks import Hunk


def bom_notes(old: Sequence[bytes], new: Sequence[bytes]) -> list[str]:
    """Return what happened to the byte order mark of a file that is on both sides."""
    if has_bom(old) == has_bom(new):
        return []
    return [f"byte order mark {'added' if has_bom(new) else 'removed'}"]


def ending_notes(hunks: Sequence[Hunk], old: Sequence[bytes], new: Sequence[bytes]) -> list[str]:
    """Return one summary for each way in which line endings alone changed."""
    ways: Counter[tuple[bytes, bytes]] = Counter()
    for hunk in hunks:
        for change in hunk.changes:
            if change.old is not None and change.new is not None:
                ways[ending(old[change.old]), ending(new[change.new])] += 1
    return [
        f"{'1 line' if count == 1 else f'{count} lines'}: "
        f"{ENDING_NAMES[before]} → {ENDING_NAMES[after]}"
        for (before, after), count in sorted(ways.items())
    ]


def has_mixed_endings(*sides: bytes | None) -> bool:
    """Return whether both LF and CRLF end lines of a file or of its two versions."""
    crlf = sum(side.count(CRLF) for side in sides if side)
    return 0 < crlf < sum(side.count(LF) for side in sides if side)


def is_utf8(data: bytes) -> bool:
    """Return whether a content is UTF-8 text."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def span_of(start: int, end: int, bom: bool) -> tuple[int, int]:
    """Return the 1-based start and the number of lines; an empty span names the line before."""
    start, end = max(0, start - bom), max(0, end - bom)
    return (start + 1 if end > start else start), end - start
