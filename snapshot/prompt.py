"""The prompt that asks an agent for changes: what to change, what to leave out, what stands.

A pure function of what the review knows. Names and quoted lines come from the agent's files, so
they go through the sanitiser, each quoted line behind a mark of its own; lines, quotes and the
whole text are bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from .lines import split_plain, stem
from .safe_text import decode, safe_block, safe_line, safe_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_TEXT: Final = 32 << 10
"""Characters of the whole text; what finds no room is for the next request."""

MAX_QUOTED_LINES: Final = 12
MAX_QUOTED_CHARACTERS: Final = 200
MAX_NAMED: Final = 40
"""Files that are named of what stands."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to ask for: a comment, or a rejected hunk with its reason."""

    key: str
    """Names it, so that it can be noted as sent."""
    path: bytes
    """Empty for the whole review."""
    start: int
    """1-based; 0: the whole file."""
    end: int
    old: bool
    """Whether the lines are those of the snapshot."""
    quote: bytes
    text: str
    outdated: bool = False


class Standing(NamedTuple):
    """A file of which something is accepted."""

    path: bytes
    accepted: int
    total: int


class Prompt(NamedTuple):
    """The text, empty when there is nothing to ask for, and which items are in it."""

    text: str
    keys: tuple[str, ...]
    left_out: int


def compose_prompt(
    rejected: Iterable[Item],
    comments: Sequence[Item],
    merged: Sequence[Standing],
    accepted: Sequence[Standing],
) -> Prompt:
    """Return the prompt.

    Args:
        rejected: hunks that must not come back, with reasons; read only as far as there is room.
        comments: what the user wrote.
        merged: what lies in the workspace already.
        accepted: what is accepted and not merged yet.

    """
    standing = _standing(merged, accepted)
    writer = _Writer(MAX_TEXT - sum(len(line) + 1 for line in standing))
    writer.section("Please change:", comments)
    writer.section("I rejected these changes. Undo them and do not bring them back:", rejected)
    if not writer.keys:
        return Prompt("", (), writer.left_out)
    lines = ["I reviewed your changes.", *writer.lines, *standing]
    return Prompt("\n".join(lines), tuple(writer.keys), writer.left_out)


class _Writer:
    """Adds items as long as there is room."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.lines: list[str] = []
        self.keys: list[str] = []
        self.left_out = 0

    def section(self, title: str, items: Iterable[Item]) -> None:
        """Add the items below a title; nothing where there is none."""
        begun = False
        for item in items:
            lines = ([] if begun else ["", title]) + _lines(item, len(self.keys) + 1)
            size = sum(len(line) + 1 for line in lines)
            if size > self.room:
                self.left_out += 1
                continue
            begun = True
            self.room -= size
            self.lines += lines
            self.keys.append(item.key)


def _lines(item: Item, number: int) -> list[str]:
    head = f"{number}. {_where(item)}"
    return [head, *(f"   {line}" for line in (*_quoted(item.quote), *_words(item.text)))]


def _where(item: Item) -> str:
    if not item.path:
        return "The whole change"
    name = safe_name(item.path).text
    if item.start:
        name += f":{item.start}" + (f"-{item.end}" if item.end > item.start else "")
    if item.old and item.start:
        name += " (numbers of the snapshot)"
    return name + (" (an earlier version of it)" if item.outdated else "")


def _quoted(quote: bytes) -> list[str]:
    lines = split_plain(quote)
    shown = [safe_line(decode(stem(line))).text for line in lines[:MAX_QUOTED_LINES]]
    cut = [
        line if len(line) <= MAX_QUOTED_CHARACTERS else f"{line[:MAX_QUOTED_CHARACTERS]}…"
        for line in shown
    ]
    more = len(lines) - len(shown)
    return [f"> {line}" for line in cut] + ([f"> … {more} more lines"] if more else [])


def _words(text: str) -> list[str]:
    return safe_block(text).text.split("\n") if text else []


def _standing(merged: Sequence[Standing], accepted: Sequence[Standing]) -> list[str]:
    lines: list[str] = []
    for title, files in (
        ("Merged into my workspace; build on it and leave it as it is:", merged),
        ("Accepted; leave it as it is:", accepted),
    ):
        if files:
            lines += ["", title, *map(_standing_line, files[:MAX_NAMED])]
        if len(files) > MAX_NAMED:
            lines.append(f"- and {len(files) - MAX_NAMED} more files")
    return lines


def _standing_line(file: Standing) -> str:
    part = "" if file.accepted == file.total else f" ({file.accepted} of {file.total} hunks)"
    return f"- {safe_name(file.path).text}{part}"
