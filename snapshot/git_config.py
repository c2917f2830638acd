"""Git's configuration grammar: what git itself reads from a file, and writing it anew.

A sanitiser that works on lines misses what git accepts in other places (a key behind the section
header, a value that goes on in the next line, the old dotted sections). So the file is parsed as
git parses it, and what is kept is written from the parsed values; no source text is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_BYTES: Final = 1 << 20
"""Longest config file that is parsed."""

_SPACE: Final = frozenset(" \t\n\r")
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_KEY: Final = _LETTERS | frozenset("0123456789-")
_ESCAPES: Final = {"t": "\t", "b": "\b", "n": "\n", "\\": "\\", '"': '"'}


class BadConfig(ValueError):
    """Git itself would refuse the file; the message says where."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: section and key in lower case; `value` is None for a bare key (true)."""

    section: str
    subsection: str | None
    key: str
    value: str | None

    @property
    def name(self) -> str:
        """The section and key without the subsection: `remote.url`."""
        return f"{self.section}.{self.key}"


def parse(data: bytes) -> list[Setting]:
    """Read a config file as git does. Raises BadConfig."""
    if len(data) > MAX_BYTES:
        raise BadConfig(f"longer than {MAX_BYTES} bytes")
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    return _Parser(text.replace("\r\n", "\n")).run()


class _Parser:
    """Git's reader, one character at a time; the end of the file counts as a line end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._section = ""
        self._subsection: str | None = None
        self._found: list[Setting] = []

    def run(self) -> list[Setting]:
        while self._at < len(self._text):
            letter = self._next()
            if letter in "#;":
                self._skip_line()
            elif letter == "[":
                self._header()
            elif letter in _LETTERS:
                self._setting(letter)
            elif letter not in _SPACE:
                raise self._bad()
        return self._found

    def _next(self) -> str:
        """Give the next character; beyond the end, line ends."""
        letter = self._text[self._at] if self._at < len(self._text) else "\n"
        self._at += 1
        return letter

    def _bad(self) -> BadConfig:
        line = self._text.count("\n", 0, max(self._at - 1, 0)) + 1
        return BadConfig(f"bad config line {line}")

    def _skip_line(self) -> None:
        while self._next() != "\n":
            pass

    def _header(self) -> None:
        name = ""
        while (letter := self._next()) in _KEY or letter == ".":
            name += letter.lower()
        if letter == "]":  # `[a.b]`: the old way to write a subsection, without its case
            section, dot, rest = name.partition(".")
            self._section, self._subsection = section, rest if dot else None
        elif letter in _SPACE:
            self._section, self._subsection = name, self._quoted(letter)
        else:
            raise self._bad()
        if not self._section or self._at > len(self._text):
            raise self._bad()

    def _quoted(self, letter: str) -> str:
        while letter in _SPACE:
            if letter == "\n":
                raise self._bad()
            letter = self._next()
        if letter != '"':
            raise self._bad()
        result = ""
        while (letter := self._next()) != '"':
            if letter == "\\":
                letter = self._next()
            if letter == "\n":
                raise self._bad()
            result += letter
        if self._next() != "]":
            raise self._bad()
        return result

    def _setting(self, letter: str) -> None:
        key = ""
        while letter in _KEY:
            key += letter.lower()
            letter = self._next()
        while letter in " \t":
            letter = self._next()
        if letter not in "\n=":
            raise self._bad()
        value = None if letter == "\n" else self._value()
        self._found.append(Setting(self._section, self._subsection, key, value))

    def _value(self) -> str:
        """Read a value to its line's end: quotes, escapes, comments, trimmed outer blanks."""
        result: list[str] = []
        kept = 0  # how much of the result stays when trailing blanks are cut
        quoted = False
        while (letter := self._next()) != "\n":
            if letter in _SPACE and not quoted:
                if result:
                    result.append(letter)
                continue
            if letter in "#;" and not quoted:
                self._skip_line()
                break
            if letter == '"':
                quoted = not quoted
            elif letter == "\\":
                result += self._escape()
            else:
                result.append(letter)
            kept = len(result)
        if quoted:
            raise self._bad()
        return "".join(result[:kept]).partition("\0")[0]

    def _escape(self) -> str:
        letter = self._next()
        if letter == "\n":
            return ""
        if letter not in _ESCAPES:
            raise self._bad()
        return _ESCAPES[letter]


def render(settings: Iterable[Setting]) -> bytes:
    """Write settings as a config file that git reads to the same values."""
    lines: list[str] = []
    previous: tuple[str, str | None] | None = None
    for item in settings:
        place = (item.section, item.subsection)
        if place != previous:
            lines.append(_header_line(item))
            previous = place
        lines.append(f"\t{item.key}" + ("" if item.value is None else f" = {_quote(item.value)}"))
    return "".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")


def _header_line(item: Setting) -> str:
    if item.subsection is None:
        return f"[{item.section}]"
    text = item.subsection.replace("\\", "\\\\").replace('"', '\\"')
    return f'[{item.section} "{text}"]'


def _quote(value: str) -> str:
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        value = value.replace(plain, escaped)
    return '"' + value.replace("\b", "\\b") + '"'
