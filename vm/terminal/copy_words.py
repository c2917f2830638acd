"""Words as vi sees them: letters and digits, or other characters, between blanks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm.terminal.copy_text import BLANK

if TYPE_CHECKING:
    from vm.terminal.copy_cursor import Cursor
    from vm.terminal.copy_text import Place


def kind(cell: str) -> int:
    """Return 0 for a blank, 1 for a part of a word, 2 for other characters."""
    if not cell or cell in BLANK:
        return 0
    return 1 if cell[0].isalnum() or cell[0] == "_" or not cell.isascii() else 2


def word_next(text: Cursor, place: Place) -> Place:
    """Return the start of the next word; an empty line is one."""
    was = kind(text.cell(place))
    while (found := text.following(place)) is not None:
        place, crossed = found
        if crossed:
            was = 0
            if not text.length(place.y):
                return place
        now = kind(text.cell(place))
        if now and now != was:
            return place
        was = now
    return place


def word_end(text: Cursor, place: Place) -> Place:
    """Return the end of the word, or of the next one."""
    found = text.following(place)
    while found is not None and not kind(text.cell(found[0])):
        place = found[0]
        found = text.following(place)
    if found is None:
        return place
    place = found[0]
    was = kind(text.cell(place))
    while (found := text.following(place)) is not None:
        if found[1] or kind(text.cell(found[0])) != was:
            break
        place = found[0]
    return place


def word_back(text: Cursor, place: Place) -> Place:
    """Return the start of the word, or of the one before; an empty line is one."""
    found = text.preceding(place)
    while found is not None and not kind(text.cell(found[0])):
        place, crossed = found
        if crossed and not text.length(place.y):
            return place
        found = text.preceding(place)
    if found is None:
        return place
    place = found[0]
    was = kind(text.cell(place))
    while (found := text.preceding(place)) is not None:
        if found[1] or kind(text.cell(found[0])) != was:
            break
        place = found[0]
    return place
