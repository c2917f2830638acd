"""Cases of a terminal's behaviour as data: what is printed, and what must then be there.

Each case is fed at once and again byte by byte; both must end alike. Cursors are given as the guest
would be told them, `row;column` from 1. Screens are lines without blanks at their ends, and without
empty lines at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.conformance.embedder import cells
from tests.doubles.engines import engine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vm.terminal.ghostty_engine import GhosttyEngine

COLUMNS, ROWS = 20, 6


class Case(NamedTuple):
    """One behaviour; what is None is not looked at."""

    name: str
    data: bytes
    screen: tuple[str, ...] | None = None
    cursor: str | None = None
    replies: bytes | None = None


def case(
    name: str,
    data: str | bytes,
    screen: Iterable[str] | None = None,
    cursor: str | None = None,
    replies: str | None = None,
) -> Case:
    """Make a case; in `data` and `replies`, `^[` stands for an escape character."""
    raw = data.replace("^[", "\x1b").encode() if isinstance(data, str) else data
    wanted = None if replies is None else replies.replace("^[", "\x1b").encode()
    return Case(name, raw, None if screen is None else tuple(screen), cursor, wanted)


def table(*groups: Iterable[Case]) -> pytest.MarkDecorator:
    """Parametrise a test's `it` over all cases of some groups; names must differ."""
    every = [it for group in groups for it in group]
    names = [it.name for it in every]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, twice
    return pytest.mark.parametrize("it", every, ids=names)


def screen(terminal: GhosttyEngine) -> tuple[str, ...]:
    """What the page shows, one character a cell."""
    frame = terminal.frame(full=True)
    found = [cells(frame.rows[y]).rstrip() for y in range(frame.height)]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def cursor(terminal: GhosttyEngine) -> str:
    """Where the drawn cursor is, as `row;column`; `hidden` when it is not drawn."""
    at = terminal.frame().cursor
    return "hidden" if at is None else f"{at.y + 1};{at.x + 1}"


def check(it: Case, columns: int = COLUMNS, rows: int = ROWS) -> None:
    """Play a case and compare; then once more byte by byte."""
    whole, pieces = engine(columns, rows), engine(columns, rows)
    whole.feed(it.data)
    replies = whole.take_replies()
    if it.screen is not None:
        _same(screen(whole), it.screen)
    if it.cursor is not None:
        _same(cursor(whole), it.cursor)
    if it.replies is not None:
        _same(replies, it.replies)
    for byte in it.data:
        pieces.feed(bytes([byte]))
    _same(pieces.take_replies(), replies)
    _same(pieces.frame(full=True), whole.frame(full=True))
    for terminal in (whole, pieces):
        terminal.close()


def _same(found: object, wanted: object) -> None:
    # this module's assertions are not pytest's, so they say themselves what they found
    assert found == wanted, f"found {found!r}, wanted {wanted!r}"
