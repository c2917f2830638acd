"""Takes a credential's value out of what the upstream answers, across every border of chunks.

What is found is overwritten, never shortened: lengths that were announced stay true. Bytes are held
back only as long as they may be the beginning of the value, so a stream of events is not delayed.
Pure.
"""

from __future__ import annotations

import base64
import html
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

_MASKS: Final = (b"*", b" ")
"""What takes the value's place: a blank is in no credential and in no form of one."""


def forms(value: bytes) -> frozenset[bytes]:
    """Return how a value (UTF-8) may stand in an answer, in lower case.

    As it is, with percent signs, with the escapes of JSON and HTML, in UTF-16 and UTF-32, in
    hexadecimal and in base64 of either alphabet at each of the three places that it can have in a
    longer text.
    """
    text = value.decode()
    percent = {
        quote(text, safe=""),
        quote(text, safe="/"),
        "".join(f"%{byte:02x}" for byte in value),
    }
    written = {*_json(text), *percent, html.escape(text), html.escape(text, quote=False)}
    plain = {value, value.hex().encode(), *(form.encode() for form in written)}
    # without its last zeros, either order of bytes holds it
    wide = {text.encode("utf-16-le")[:-1], text.encode("utf-32-le")[:-3]}
    coded = {form for shift in range(3) for form in _base64(value, shift)}
    return frozenset(form.lower() for form in plain | wide | coded)


def _json(text: str) -> Iterable[str]:
    """Return what common writers make of a text in JSON: some escape `/`, or what HTML minds."""
    escaped = json.dumps(text)[1:-1]
    yield escaped
    yield escaped.replace("/", "\\/")
    for sign in "&<>":
        escaped = escaped.replace(sign, f"\\u{ord(sign):04x}")
    yield escaped
    yield "".join(f"\\u{ord(sign):04x}" for sign in text)


def _base64(value: bytes, shift: int) -> Iterable[bytes]:
    """Return the characters that depend on nothing but the value."""
    bits = 8 * (shift + len(value))
    first, last = -(-8 * shift // 6), bits // 6
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(bytes(shift) + value)[first:last]


class Scrubber:
    """One answer's bytes in turn: `feed` each piece, then `finish`."""

    def __init__(self, patterns: Iterable[bytes]) -> None:
        self._patterns = sorted({pattern.lower() for pattern in patterns if pattern})
        self._mask = next(
            mask for mask in _MASKS if mask == b" " or not any(mask in p for p in self._patterns)
        )
        self._longest = max((len(p) for p in self._patterns), default=1)
        self._held = b""
        self._spoilt = 0
        self.found = 0
        """How often the value was there."""

    def feed(self, piece: bytes) -> bytes:
        """Take a piece; return what is certain."""
        return self._release(self._held + piece, last=False)

    def finish(self) -> bytes:
        """Return what was held back: no more follows."""
        return self._release(self._held, last=True)

    def whole(self, text: bytes) -> bytes:
        """Return a text that stands alone, as a header's value."""
        return Scrubber(self._patterns).feed(text + b"\n" * self._longest)[: len(text)]

    def _release(self, data: bytes, last: bool) -> bytes:
        low = data.lower()
        out = bytearray(data)
        out[: self._spoilt] = self._mask * self._spoilt
        reach = self._spoilt
        for pattern in self._patterns:
            at = low.find(pattern)
            while at >= 0:
                end = at + len(pattern)
                out[at:end] = self._mask * len(pattern)
                reach = max(reach, end)
                self.found += 1
                at = low.find(pattern, at + 1)
        keep = len(data) if last else self._begins(low)
        self._held, self._spoilt = data[keep:], max(0, reach - keep)
        return bytes(out[:keep])

    def _begins(self, low: bytes) -> int:
        """Return where the longest end begins that a form of the value begins with."""
        best = len(low)
        for pattern in self._patterns:
            at = low.find(pattern[:1], max(0, len(low) - len(pattern) + 1))
            while 0 <= at < best:
                if pattern.startswith(low[at:]):
                    best = at
                    break
                at = low.find(pattern[:1], at + 1)
        return best
