"""The line in which a search is typed: what stands in it, and how it is drawn."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.strip import Strip

from widgets.cells import cells, fit
from widgets.copy_keys import SEARCH_KEY

if TYPE_CHECKING:
    from collections.abc import Callable

    from widgets.copy_keys import Direction, SearchAction
    from widgets.terminal_draw_ink import Ink
    from widgets.terminal_feed import View

MAX_NEEDLE = 256
"""Characters of a search."""

LEAST_ROOM = 6
"""Cells of the needle that are always to be seen; what was found gives way to it."""


class SearchLine:
    """A text with a cursor in it."""

    def __init__(self, direction: Direction = "forwards", *, alone: bool = False) -> None:
        self.direction: Direction = direction
        self.alone = alone
        """Copy mode was begun for this search only, so it ends with it."""
        self.text = ""
        self.at = 0
        self._edits: dict[SearchAction, Callable[[], tuple[str, int]]] = {
            "erase": lambda: self._cut(self.at - 1, self.at),
            "erase_next": lambda: self._cut(self.at, self.at + 1),
            "erase_word": lambda: self._cut(self._word_start(), self.at),
            "erase_all": lambda: self._cut(0, self.at),
            "left": lambda: (self.text, self.at - 1),
            "right": lambda: (self.text, self.at + 1),
            "start": lambda: (self.text, 0),
            "end": lambda: (self.text, len(self.text)),
        }

    def press(self, key: str, character: str | None) -> SearchAction | None:
        """Take a key; what the line cannot do by itself is returned for the view to do."""
        row = SEARCH_KEY.get(key)
        if row is None:
            if character is not None and character.isprintable():
                self.insert(character)
            return None
        if row.action == "erase" and not self.text:
            return "cancel"
        edit = self._edits.get(row.action)
        if edit is None:
            return row.action
        text, at = edit()
        self.text, self.at = text, max(0, min(at, len(text)))
        return None

    def insert(self, text: str) -> None:
        """Type a text, of several lines the first."""
        first = text.strip("\r\n").splitlines()[:1]
        typed = "".join(c for c in "".join(first) if c.isprintable())
        typed = typed[: MAX_NEEDLE - len(self.text)]
        self.text = self.text[: self.at] + typed + self.text[self.at :]
        self.at += len(typed)

    def _cut(self, start: int, end: int) -> tuple[str, int]:
        start = max(0, start)
        return self.text[:start] + self.text[end:], start

    def _word_start(self) -> int:
        found = re.search(r"\w+\W*$|\W+$", self.text[: self.at])
        return found.start() if found else 0

    def draw(self, view: View, width: int, ink: Ink) -> Strip:
        """Return the line in exactly `width` cells."""
        if width < 2:
            return Strip([Segment(" " * width, ink.prompt())], width)
        found, room = self._room(view, width)
        before, under, after = self._window(room)
        mark = "/" if self.direction == "forwards" else "?"
        text = ink.prompt()
        segments = [
            Segment(mark, ink.prompt("accent", "b")),
            Segment(before, text),
            Segment(under, ink.turned(text)),
            Segment(after, text),
        ]
        used = 1 + cells(before + under + after)
        if found:
            token = "warning" if self._is_lost(view) else "muted"
            segments.append(Segment(f"  {found}", ink.prompt(token)))
            used += 2 + cells(found)
        segments.append(Segment(fit("", width - used), text))
        return Strip(segments, width)

    def _is_lost(self, view: View) -> bool:
        return bool(self.text) and not view.matches and not view.searching

    def _room(self, view: View, width: int) -> tuple[str, int]:
        """Return how much was found, as long as the needle leaves room, and the needle's room."""
        wanted = min(cells(self.text) + 1, LEAST_ROOM)
        for found in found_texts(view) if self.text else ():
            room = width - 3 - cells(found)
            if room >= wanted:
                return found, room
        return "", width - 1

    def _window(self, room: int) -> tuple[str, str, str]:
        """Return what is seen of the needle: before, under and after its cursor."""
        under = self.text[self.at : self.at + 1] or " "
        before = self.text[: self.at]
        while cells(before) + cells(under) > room and before:
            before = before[1:]
        after = self.text[self.at + 1 :]
        while cells(before) + cells(under) + cells(after) > room and after:
            after = after[:-1]
        return (before, under, after) if cells(under) <= room else ("", " ", "")


def found_texts(view: View) -> tuple[str, ...]:
    """Return how much a search found, from the longest way to say it to the shortest.

    A plus says that it still goes on and may find more.
    """
    if not view.matches:
        return ("searching", "…") if view.searching else ("nothing", "none")
    all_of_them = f"{view.matches}+" if view.searching else f"{view.matches}"
    if not view.match:
        return (f"{all_of_them} found", all_of_them)
    return (f"{view.match} of {all_of_them}", f"{view.match}/{all_of_them}")
