"""The line model: bytes split at LF alone, terminators kept.

CR, form feed, NEL, U+2028 and their like stay inside of a line, so line numbers are those of
`grep -n`. A UTF-8 byte order mark is an element of its own: adding or removing it is one change.
"""

from __future__ import annotations

import io
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

BOM: Final = b"\xef\xbb\xbf"
LF: Final = b"\n"
CRLF: Final = b"\r\n"

BINARY_WINDOW: Final = 8000
"""Bytes that are searched for NUL, as git does."""

ENDING_NAMES: Final = {LF: "LF", CRLF: "CRLF", b"": "no newline"}
"""How the screen calls a line's ending."""


def split(data: bytes) -> list[bytes]:
    """Split at LF; a leading byte order mark becomes the first element."""
    if data.startswith(BOM):
        return [BOM, *io.BytesIO(data[len(BOM) :])]
    return list(io.BytesIO(data))


def split_plain(data: bytes) -> list[bytes]:
    """Split at LF and nothing else: what git and patches call lines."""
    return list(io.BytesIO(data))


def has_bom(lines: Sequence[bytes]) -> bool:
    """Return whether the first element of split lines is a byte order mark."""
    return bool(lines) and lines[0] == BOM


def ending(line: bytes) -> bytes:
    """Return a line's terminator: LF, CRLF or nothing."""
    if line.endswith(CRLF):
        return CRLF
    return LF if line.endswith(LF) else b""


def stem(line: bytes) -> bytes:
    """Return a line without its terminator."""
    found = ending(line)
    return line[: -len(found)] if found else line


def usual_ending(lines: Sequence[bytes]) -> bytes:
    """Return the terminator that most lines have; LF where there is none."""
    counted = Counter(ending(line) for line in lines)
    return CRLF if counted[CRLF] > counted[LF] else LF


def join(lines: Sequence[bytes], model: Sequence[bytes] = ()) -> bytes:
    """Join lines; one without terminator that is not the last gets the one usual in `model`."""
    if all(line.endswith(LF) for line in lines[:-1]):
        return b"".join(lines)
    last, usual = len(lines) - 1, usual_ending(model)
    return b"".join(
        line if index == last or line.endswith(LF) or (index == 0 and line == BOM) else line + usual
        for index, line in enumerate(lines)
    )


def is_binary(data: bytes) -> bool:
    """Return whether content is handled as a whole, by git's rule: a NUL near its start."""
    return b"\0" in data[:BINARY_WINDOW]
