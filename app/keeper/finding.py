"""Finding a text in all files of the generation under review."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from app.errors import AppError
from app.protocol_review import MAX_FIND, FoundPlace, FoundPlaces
from app.wire_text import to_text
from snapshot.find import Places, may_hold
from snapshot.lines import stem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.keeper.desk import Desk
    from snapshot.find import Side
    from snapshot.review import FileReview

MAX_TOLD: Final = 1000
"""Places that are told in all."""

MAX_TOLD_BYTES: Final = 400 << 10
"""Bytes of paths and lines in one answer, whose JSON must fit into one line."""

MAX_TEXT: Final = 200
"""Bytes of a line that are told."""

FIND_S: Final = 10.0
"""Seconds after which the search ends where it is."""


def find(desk: Desk, text: str) -> FoundPlaces:
    """Return where a text stands, in the order of the changes; says so where it ended early.

    Raises AppError `usage` for an empty text or one of more than MAX_FIND characters, StoreDamaged.
    """
    if not text.strip() or len(text) > MAX_FIND or "\n" in text:
        raise AppError("usage", f"A text to find has 1 to {MAX_FIND} characters and no line end.")
    deadline = time.monotonic() + FIND_S
    places: list[FoundPlace] = []
    room = MAX_TOLD_BYTES
    for place in _found(desk, text, deadline):
        room -= len(place.path) + len(place.text)
        if len(places) >= MAX_TOLD or room < 0:
            return FoundPlaces(tuple(places), f"These are the first {len(places)} places.")
        places.append(place)
    late = time.monotonic() >= deadline
    cut = f"The search ended after {FIND_S:.0f} s; there may be more." if late else ""
    return FoundPlaces(tuple(places), cut)


def _found(desk: Desk, text: str, deadline: float) -> Iterator[FoundPlace]:
    for name in list(desk.files):
        if time.monotonic() >= deadline:
            return
        with desk.lock:  # for one file at a time: decisions do not wait for a search
            file = desk.files.get(name)
            holds = file is not None and any(may_hold(side, text) for side in desk.contents(file))
            review = desk.review(file) if file is not None and holds else None
        if review is not None:
            yield from _places(name, review, text)


def _places(name: str, review: FileReview, text: str) -> Iterator[FoundPlace]:
    lines: dict[Side, list[bytes]] = {"old": review.old_lines, "new": review.new_lines}
    found: list[tuple[int, Side, int]] = [
        (review.line_number(side, line) or 0, side, line) for side, line in Places(review)(text)
    ]
    for number, side, line in sorted(found):
        yield FoundPlace(name, side, number, to_text(stem(lines[side][line])[:MAX_TEXT]))
