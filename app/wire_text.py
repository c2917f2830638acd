"""Paths as text that every JSON reader takes, and back to the same bytes.

A path is UTF-8 almost always and then stands as it is. A byte that is not part of valid UTF-8
(0x80 to 0xff) becomes one character from U+EF80 to U+EFFF, of the private use area; a character
from that range in the path itself is taken byte by byte in the same way. So the mapping has an
inverse for every path. Lone surrogates, Python's own way, are refused by strict JSON codecs.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_OFFSET: Final = 0xEF00
_RESERVED: Final = re.compile("[\uef80-\uefff]")
_SURROGATE: Final = re.compile("[\udc80-\udcff]")


def to_text(path: bytes) -> str:
    """Return the text that stands for `path`."""
    text = path.decode("utf-8", "surrogateescape")
    if text.isascii():
        return text
    text = _RESERVED.sub(_bytewise, text)
    return _SURROGATE.sub(lambda found: chr(ord(found[0]) - 0xDC00 + _OFFSET), text)


def to_bytes(text: str) -> bytes:
    """Return the path that `text` stands for."""
    if text.isascii():
        return text.encode()
    text = _RESERVED.sub(lambda found: chr(ord(found[0]) - _OFFSET + 0xDC00), text)
    return text.encode("utf-8", "surrogateescape")


def path_text(path: Path) -> str:
    """Return the text of a path of this host."""
    return to_text(os.fsencode(path))


def text_path(text: str) -> str:
    """Return a path of this host from its text, as `open` takes it."""
    return os.fsdecode(to_bytes(text))


def _bytewise(found: re.Match[str]) -> str:
    return "".join(chr(_OFFSET + byte) for byte in found[0].encode())
