"""The prefix in what a terminal sends while `cloche attach` passes everything else on.

A guest may have switched the terminal's keyboard protocol on; the prefix then comes as a sequence,
and so does the key after it. Both forms are known here, or nobody could leave such a guest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from app.prefix import prefix_byte, prefix_name

if TYPE_CHECKING:
    from collections.abc import Iterator

SEQUENCE: Final = re.compile(
    rb"\x1b\[(?:27;(?P<held>\d{1,3});(?P<other>\d{1,7})~"
    rb"|(?P<code>\d{1,7})(?::\d*)?(?::(?P<base>\d{1,7}))?"
    rb"(?:;(?P<modifiers>\d{0,3})(?::(?P<event>\d))?)?(?:;[\d:]*)?u)"
)
"""A key in xterm's form for modified keys, or in kitty's."""

SHIFT, CTRL, LOCKS = 1, 4, 0xC0
RELEASE: Final = b"3"
ONLY_MODIFIERS: Final = range(57441, 57455)
WITH_SHIFT: Final = {"^": "6", "_": "-"}
"""Signs that an American keyboard has with Shift, on these keys."""


class Command(NamedTuple):
    """What to do next: pass bytes on, or what the key after the prefix asks for."""

    do: str
    """`pass`, or the letter after the prefix."""
    data: bytes = b""


class _Typed(NamedTuple):
    """One key, or one byte of something else."""

    data: bytes
    is_prefix: bool = False
    letter: str = ""
    """What the key types, if it is a letter without ctrl or alt."""
    is_press: bool = True


class PrefixFinder:
    """Finds the prefix (`key`: its name in key events) and the letter after it."""

    def __init__(self, key: str, letters: str) -> None:
        self._byte = prefix_byte(key)
        self._letters = letters
        sign = prefix_name(key).removeprefix("ctrl+")
        sign = " " if sign == "space" else sign
        self._codes = {ord(sign): 0} | (
            {ord(WITH_SHIFT[sign]): SHIFT} if sign in WITH_SHIFT else {}
        )
        self._held = b""

    def feed(self, data: bytes) -> Iterator[Command]:
        """Yield what to do with what the terminal sent; twice the prefix is the prefix."""
        passed = bytearray()
        for typed in self._keys(data):
            if not self._held:
                if typed.is_prefix:
                    self._held = typed.data
                else:
                    passed += typed.data
            elif not typed.is_press:
                passed += typed.data  # a key that is let go, Shift alone: the prefix still waits
            else:
                held, self._held = self._held, b""
                if typed.letter and typed.letter in self._letters:
                    if passed:
                        yield Command("pass", bytes(passed))
                        passed.clear()
                    yield Command(typed.letter)
                else:
                    passed += held if typed.is_prefix else held + typed.data
        if passed:
            yield Command("pass", bytes(passed))

    def _keys(self, data: bytes) -> Iterator[_Typed]:
        at = 0
        while at < len(data):
            found = SEQUENCE.match(data, at)
            if found:
                yield self._sequence(found)
                at = found.end()
            else:
                byte = data[at : at + 1]
                yield _Typed(byte, byte == self._byte, byte.decode("latin-1").lower())
                at += 1

    def _sequence(self, found: re.Match[bytes]) -> _Typed:
        if found["other"]:
            code, modifiers = int(found["other"]), int(found["held"]) - 1
            return _Typed(found[0], self._is_prefix(code, modifiers))
        code, modifiers = int(found["code"]), max(int(found["modifiers"] or 1) - 1, 0) & ~LOCKS
        if found["event"] == RELEASE or code in ONLY_MODIFIERS:
            return _Typed(found[0], is_press=False)
        base = int(found["base"] or 0)
        is_prefix = self._is_prefix(code, modifiers) or self._is_prefix(base, modifiers)
        letter = chr(base or code).lower() if modifiers in (0, SHIFT) and code < 0x10FFFF else ""
        return _Typed(found[0], is_prefix, letter)

    def _is_prefix(self, code: int, modifiers: int) -> bool:
        wanted = self._codes.get(code)
        return wanted is not None and modifiers in (
            CTRL | wanted,
            CTRL | wanted | SHIFT * (code < 97),
        )
