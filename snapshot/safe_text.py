"""The one sanitiser for text that others wrote: names, contents, link targets, messages.

A terminal obeys control characters, and bidirectional or zero-width characters make text read
otherwise than it is. Each such character is replaced by one visible character, so columns and
highlight spans of the original stay right. Pure functions without imports of ours.
"""

from __future__ import annotations

from typing import Final, NamedTuple

TAB: Final = "\t"

_DELETE: Final = 0x7F
_C1: Final = range(0x80, 0xA0)
_BIDI: Final = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_ZERO_WIDTH: Final = (0x00AD, 0x180E, 0x200B, 0x200C, 0x200D, *range(0x2060, 0x2066), 0xFEFF)
_ZERO_WIDTH_MORE: Final = (0x115F, 0x1160, 0x3164, 0xFFA0, *range(0xFFF9, 0xFFFC))
_TAGS: Final = range(0xE0000, 0xE0080)
_SEPARATORS: Final = (0x2028, 0x2029)
_SURROGATES: Final = range(0xD800, 0xE000)

BIDI_MARK: Final = "⇄"
ZERO_WIDTH_MARK: Final = "¤"
SEPARATOR_MARK: Final = "␤"
UNKNOWN_MARK: Final = "\N{REPLACEMENT CHARACTER}"


def _table() -> dict[int, str]:
    table = {code: chr(0x2400 + code) for code in range(0x20)}
    table[_DELETE] = "\N{SYMBOL FOR DELETE}"
    table.update(dict.fromkeys(_C1, UNKNOWN_MARK))
    table.update(dict.fromkeys(_SURROGATES, UNKNOWN_MARK))
    table.update(dict.fromkeys(_SEPARATORS, SEPARATOR_MARK))
    table.update(dict.fromkeys(_BIDI, BIDI_MARK))
    table.update(dict.fromkeys((*_ZERO_WIDTH, *_ZERO_WIDTH_MORE, *_TAGS), ZERO_WIDTH_MARK))
    return table


_NAMES: Final = _table()
_LINES: Final = {code: mark for code, mark in _NAMES.items() if code != ord(TAB)}
_SUSPICIOUS: Final = frozenset(
    chr(code) for code in (*_BIDI, *_ZERO_WIDTH, *_ZERO_WIDTH_MORE, *_TAGS)
)


class SafeText(NamedTuple):
    """Text that may be shown, and whether the original could have misled its reader."""

    text: str
    suspicious: bool
    """True when bidirectional or invisible characters were in it ("Trojan Source")."""


def decode(data: bytes) -> str:
    """Return bytes as text: UTF-8, each byte that is not becomes one lone surrogate."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Return the bytes that `decode` made this text of (whatever the locale, unlike fsencode)."""
    return text.encode("utf-8", "surrogateescape")


def safe_line(text: str) -> SafeText:
    """Make one line of content printable, character by character; tabs stay for the screen."""
    if text.isascii() and text.isprintable():
        return SafeText(text, False)
    return SafeText(text.translate(_LINES), is_suspicious(text))


def safe_name(name: bytes | str) -> SafeText:
    """Make a path, link target or other single value printable; tabs are marked too."""
    text = decode(name) if isinstance(name, bytes) else name
    if text.isascii() and text.isprintable():
        return SafeText(text, False)
    return SafeText(text.translate(_NAMES), is_suspicious(text))


def safe_block(text: str) -> SafeText:
    """Make a text of several lines printable; line feeds and tabs stay."""
    lines = [safe_line(line) for line in text.split("\n")]
    return SafeText("\n".join(line.text for line in lines), any(x.suspicious for x in lines))


def is_suspicious(text: str) -> bool:
    """Return whether text holds characters that hide or reorder other characters."""
    return not text.isascii() and not _SUSPICIOUS.isdisjoint(text)
