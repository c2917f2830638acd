"""The cursor of a view: blinking, copy mode, a mirror, and a terminal larger than its view."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from textual.events import MouseDown, MouseMove
from textual.geometry import Offset
from textual.widgets import Button

from tests.doubles.pilots import until
from tests.doubles.terminal_app import GrantingFeed, TerminalApp, focused, mouse, shown
from widgets.terminal_blink import BLINK_FOR_S
from widgets.terminal_draw import BAR, LINE
from widgets.terminal_feed import Cursor

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from widgets.terminal_feed import CursorShape


def cursor_look(app: TerminalApp, x: int, y: int) -> str:
    """How the cell is drawn: its text, with `r`, `u`, `b` for the effects."""
    (segment, *_) = shown(app, y).crop(x, x + 1)
    style = segment.style
    assert style is not None
    marks = (style.reverse and "r", style.underline and "u", style.bold and "b")
    return segment.text + "".join(mark or "" for mark in marks)


async def put(pilot: Pilot[None], feed: GrantingFeed, cursor: Cursor | None) -> None:
    feed.cursor = cursor
    feed.put("text")
    await pilot.pause()


@pytest.mark.parametrize(
    ("shape", "on_text", "on_blank"),
    [
        ("block", "er", " r"),
        ("underline", "eub", LINE),
        ("hollow", "eu", " u"),
    ],
)
async def test_shapes(shape: CursorShape, on_text: str, on_blank: str) -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        await put(pilot, feed, Cursor(1, 0, shape))
        assert cursor_look(app, 1, 0) == on_text
        await put(pilot, feed, Cursor(9, 0, shape))
        assert cursor_look(app, 9, 0) == on_blank
        app.query_one(Button).focus()
        await pilot.pause()
        assert cursor_look(app, 9, 0) == " u"


async def test_a_bar_is_a_bar_where_there_is_room() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        await put(pilot, feed, Cursor(9, 0, "bar"))
        assert cursor_look(app, 9, 0) == BAR
        await put(pilot, feed, Cursor(1, 0, "bar"))
        assert cursor_look(app, 1, 0) in ("e", "eub")


async def test_a_cursor_is_hollow_in_a_mirror_and_a_block_in_copy_mode() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        feed.mirrored = True
        await focused(pilot, app)
        await put(pilot, feed, Cursor(1, 0))
        assert cursor_look(app, 1, 0) == "eu"
        feed.mirrored = False
        app.view.feed_mirrored(False)
        await put(pilot, feed, Cursor(1, 0, "bar"))
        await pilot.press("ctrl+g", "left_square_bracket")
        assert cursor_look(app, 1, 0) == "er"
        await pilot.press("slash")
        assert cursor_look(app, 1, 0) == "eu", "the keys are the search line's"
        assert cursor_look(app, 1, 9) == " r"


async def blinks(pilot: Pilot[None], app: TerminalApp) -> None:
    """Wait until the cursor was seen dark, and lit again."""
    await until(pilot, lambda: cursor_look(app, 1, 0) == "e")
    await until(pilot, lambda: cursor_look(app, 1, 0) == "er")


async def rests(pilot: Pilot[None], app: TerminalApp, look: str = "er") -> None:
    """Wait until the cursor looks the same for some blinks."""
    seen: deque[str] = deque(maxlen=20)

    def calm() -> bool:
        seen.append(cursor_look(app, 1, 0))
        return list(seen) == [look] * 20

    await until(pilot, calm)


async def test_a_cursor_blinks_where_the_guest_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("widgets.terminal_blink.BLINK_S", 0.02)
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        await put(pilot, feed, Cursor(1, 0))
        await rests(pilot, app)
        await put(pilot, feed, Cursor(1, 0, blinking=True))
        await blinks(pilot, app)
        app.query_one(Button).focus()
        await rests(pilot, app, "eu")
        await focused(pilot, app)
        await blinks(pilot, app)
        await pilot.press("ctrl+g", "left_square_bracket")
        await rests(pilot, app)


async def test_a_cursor_stops_to_blink_when_nobody_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("widgets.terminal_blink.BLINK_S", 0.02)
    now = [0.0]
    monkeypatch.setattr("widgets.terminal_blink.time", SimpleNamespace(monotonic=lambda: now[0]))
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        await put(pilot, feed, Cursor(1, 0, blinking=True))
        await blinks(pilot, app)
        now[0] += BLINK_FOR_S + 1
        await rests(pilot, app)
        await pilot.press("x")
        await blinks(pilot, app)


async def test_with_reduced_motion_nothing_blinks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("widgets.terminal_blink.BLINK_S", 0.02)
    feed = GrantingFeed()
    app = TerminalApp(feed)
    app.animation_level = "none"
    async with app.run_test() as pilot:
        await focused(pilot, app)
        await put(pilot, feed, Cursor(1, 0, blinking=True))
        await rests(pilot, app)


async def test_a_view_lower_than_the_terminal_shows_the_cursor() -> None:
    feed = GrantingFeed(40, 30)
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        for y, top in ((3, 3), (12, 3), (29, 20), (25, 20), (19, 19), (0, 0)):
            feed.cursor = Cursor(1, y)
            feed.put(*(f"row {n}" for n in range(30)), told=[])
            await pilot.pause()
            assert app.view.top == top
            assert shown(app, 0).text.startswith(f"row {top} ")
            assert cursor_look(app, 1, y - top) == "or"
            assert app.cursor_position == app.view.region.offset + Offset(1, y - top)
        feed.cursor = None
        feed.put(*(f"row {n}" for n in range(30)))
        await pilot.pause()
        assert shown(app, 9).text.startswith("row 29")


async def test_rows_that_changed_are_painted_where_they_are_seen() -> None:
    feed = GrantingFeed(40, 30)
    feed.cursor = Cursor(1, 29)
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await put(pilot, feed, Cursor(1, 29))
        feed.put(*(f"row {n}" for n in range(30)), told=[25])
        await pilot.pause()
        assert shown(app, 5).text.startswith("row 25")


async def test_a_view_without_a_feed_takes_keys_and_mouse_quietly() -> None:
    app = TerminalApp()
    async with app.run_test() as pilot:
        await focused(pilot, app)
        await pilot.press("x", "ctrl+g", "left_square_bracket", "ctrl+g", "f", "y")
        await mouse(pilot, MouseDown, 3, 3, 1)
        await mouse(pilot, MouseMove, 4, 4, 1)
        app.view.take_over()
        assert not app.view.copying
        assert not app.view.has_keys
