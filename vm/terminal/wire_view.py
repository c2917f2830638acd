"""Messages of what the user does with the page: select, copy, search; and pasting in pieces."""

from __future__ import annotations

import enum
import struct
from typing import NamedTuple, TypeVar

from vm.terminal.screen import MAX_COUNT, MAX_NEEDLE, Motion, Shape, Unit
from vm.terminal.wire import MAX_TEXT, WireError, exactly, pack_texts, plain_text, unpack_texts

Number = TypeVar("Number", bound=enum.IntEnum)

COPIED = struct.Struct("<IB")
"""Request, whether the text was cut at MAX_TEXT; the text follows."""
SELECT = struct.Struct("<BhhBB")
"""What to do (see `Select`), x, y, unit, block."""
MOVE = struct.Struct("<BH")
"""Motion and count; a count of 0 means that the user gave none."""
BYTE = struct.Struct("<B")
"""COPY_MODE: on. MARK: shape. FIND: backwards. PASTE and SEARCH: flags, and a text follows."""


class Select(enum.IntEnum):
    """What SELECT does."""

    CLEAR = 0
    START = 1
    EXTEND = 2


class Paste(enum.IntFlag):
    """Flags of PASTE: a long paste comes in pieces, of which the middle ones have no flag."""

    BEGIN = 1
    END = 2


PASTE_WHOLE = Paste.BEGIN | Paste.END


class Selecting(NamedTuple):
    """What a SELECT message says."""

    action: Select
    x: int
    y: int
    unit: Unit
    block: bool


class Copied(NamedTuple):
    """An answer to COPY."""

    request: int
    cut: bool
    """The text was longer than MAX_TEXT and ends there."""
    text: str


def pack_select(it: Selecting) -> bytes:
    """Return the payload of SELECT; places beyond 16 bits are cut to them."""
    x, y = (max(-0x8000, min(place, 0x7FFF)) for place in (it.x, it.y))
    return SELECT.pack(it.action, x, y, it.unit, it.block)


def unpack_select(payload: bytes) -> Selecting:
    """Read a SELECT."""
    action, x, y, unit, block = exactly(SELECT, payload)
    return Selecting(_member(Select, action), x, y, _member(Unit, unit), bool(block))


def pack_move(motion: Motion, count: int | None = None) -> bytes:
    """Return the payload of MOVE."""
    return MOVE.pack(motion, max(1, min(count, MAX_COUNT)) if count is not None else 0)


def unpack_move(payload: bytes) -> tuple[Motion, int | None]:
    """Read a MOVE: the motion, and the count unless the user gave none."""
    motion, count = exactly(MOVE, payload)
    return _member(Motion, motion), min(count, MAX_COUNT) or None


def unpack_shape(payload: bytes) -> Shape:
    """Read a MARK."""
    return _member(Shape, *exactly(BYTE, payload))


def pack_search(text: str, *, backwards: bool) -> bytes:
    """Return the payload of SEARCH; text beyond MAX_NEEDLE characters is cut off."""
    return BYTE.pack(backwards) + pack_texts(text[:MAX_NEEDLE])


def unpack_search(payload: bytes) -> tuple[str, bool]:
    """Read a SEARCH: the text and whether it goes backwards."""
    flags, text = _flags_and_text(payload, MAX_NEEDLE * 4)
    return text[:MAX_NEEDLE], bool(flags)


def pack_paste(text: str, flags: Paste = PASTE_WHOLE) -> bytes:
    """Return the payload of PASTE; the text must fit MAX_TEXT bytes."""
    return BYTE.pack(flags) + pack_texts(text)


def unpack_paste(payload: bytes) -> tuple[str, Paste]:
    """Read a PASTE: the text and its flags."""
    flags, text = _flags_and_text(payload, MAX_TEXT)
    return text, Paste(flags & PASTE_WHOLE)


def pack_copied(request: int, text: str, *, newest: bool = False) -> bytes:
    """Return the payload of COPIED; of a text beyond MAX_TEXT bytes its begin or newest end."""
    data = text.encode("utf-8", "replace")
    kept = data[-MAX_TEXT:] if newest else data[:MAX_TEXT]
    head = COPIED.pack(request, len(data) > MAX_TEXT)
    # a cut may fall into a character, whose rest would be replaced by something longer
    return head + pack_texts(kept.decode("utf-8", "ignore"))


def unpack_copied(payload: bytes) -> Copied:
    """Read a COPIED; the text is plain (see `plain_text`)."""
    request, cut = exactly(COPIED, payload[: COPIED.size])
    (text,) = unpack_texts(payload[COPIED.size :], 1, MAX_TEXT)
    return Copied(request, bool(cut), plain_text(text))


def _flags_and_text(payload: bytes, limit: int) -> tuple[int, str]:
    (flags,) = exactly(BYTE, payload[: BYTE.size])
    (text,) = unpack_texts(payload[BYTE.size :], 1, limit)
    return flags, text


def _member(kind: type[Number], value: int) -> Number:
    try:
        return kind(value)
    except ValueError as error:
        raise WireError(f"There is no {kind.__name__.lower()} {value}.") from error
