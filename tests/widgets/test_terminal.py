"""The terminal widget over a feed filled by hand: keys, prefix, mouse, drawing, pace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.events import Paste
from textual.geometry import Offset, Region
from textual.screen import ModalScreen, Screen
from textual.widgets import Button

from tests.doubles.feed import FakeFeed
from tests.doubles.pilots import until
from tests.doubles.terminal_app import TerminalApp, focused, names, shown
from widgets.terminal import DEFAULT_PASSTHROUGH, TerminalView
from widgets.terminal_feed import Cursor, Scroll

if TYPE_CHECKING:
    from textual.message import Message


KEYS = [
    "tab", "shift+tab", "escape", "enter", "ctrl+c", "ctrl+q", "ctrl+p", "ctrl+t", "j", "space",
    "up", "f1", "ctrl+z", "alt+0", "alt+enter", "ctrl+s", "question_mark",
]  # fmt: skip


async def test_every_key_goes_to_the_guest() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        for number, key in enumerate(KEYS, 1):
            await pilot.press(key)
            assert feed.told("key") == KEYS[:number]
            assert (key, app.noted) == (key, [])
            assert app.view.has_focus
            assert app.is_running


async def test_passthrough_keys_are_the_apps() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        await pilot.press("alt+1", "alt+2", "f12")
        assert feed.told("key") == []
        assert app.noted == ["alt+1", "alt+2", "f12"]


def test_which_keys_pass_through() -> None:
    assert {f"alt+{n}" for n in range(1, 10)} | {"f12"} == DEFAULT_PASSTHROUGH


async def test_bindings_are_back_when_something_else_has_the_focus() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        app.query_one(Button).focus()
        await pilot.press("j", "ctrl+t")
        assert app.noted == ["j", "ctrl+t"]
        assert feed.told("key") == []


async def test_the_prefix_and_its_command() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        await pilot.press("ctrl+g")
        assert names(app) == ["PrefixPressed"]
        assert app.view.has_class("-prefix")
        await pilot.press("left_shift", "z", "y")
        command = app.heard[-1]
        assert isinstance(command, TerminalView.PrefixCommand)
        assert (command.key, command.view) == ("z", app.view)
        assert not app.view.has_class("-prefix")
        assert feed.told("key") == ["y"]


async def test_the_prefix_twice_goes_to_the_guest_once() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        await pilot.press("ctrl+g", "ctrl+g")
        assert feed.told("key") == ["ctrl+g"]
        assert not app.view.has_class("-prefix")


async def test_escape_focus_and_passthrough_give_the_prefix_up() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        await pilot.press("ctrl+g", "escape")
        assert names(app) == ["PrefixPressed", "PrefixCancelled"]
        await pilot.press("ctrl+g")
        app.query_one(Button).focus()
        await pilot.pause()
        assert names(app)[2:] == ["PrefixPressed", "PrefixCancelled"]
        await focused(pilot, app)
        await pilot.press("ctrl+g", "alt+1")
        assert names(app)[4:] == ["PrefixPressed", "PrefixCancelled"]
        assert app.noted == ["alt+1"]
        assert feed.told("key") == []


async def test_another_prefix_and_other_passthrough_keys() -> None:
    feed = FakeFeed()
    app = TerminalApp()
    async with app.run_test() as pilot:
        view = TerminalView(feed, prefix="ctrl+b", passthrough=frozenset({"f2"}))
        await app.mount(view)
        view.focus()
        await pilot.press("ctrl+g", "f12", "ctrl+b")
        assert feed.told("key") == ["ctrl+g", "f12"]
        assert names(app) == ["PrefixPressed"]


async def test_paste_goes_to_the_guest() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        app.post_message(Paste("two\nlines"))
        await pilot.pause()
        assert feed.told("paste") == ["two\nlines"]


async def test_rows_are_drawn_and_acknowledged() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await pilot.pause()
        acks = feed.acks
        feed.put("first", "second")
        await until(pilot, lambda: feed.acks > acks)
        assert shown(app, 0).text.rstrip() == "first"
        assert shown(app, 1).text.rstrip() == "second"


async def test_only_changed_rows_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        feed.put(*"abcdefghij")
        await pilot.pause(0.1)
        asked: list[Region] = []

        def refresh(*regions: Region) -> None:
            asked.extend(regions)

        monkeypatch.setattr(app.view, "refresh", refresh)
        feed.put("a", "b", "c", "D", told=[3])
        assert asked == [Region(0, 3, 40, 1)]
        asked.clear()
        feed.put(*"abcdefghij")
        assert asked == [Region(0, 0, 40, 10)]


async def test_changes_out_of_sight_are_acknowledged_at_once() -> None:
    feed = FakeFeed(rows=50)
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await pilot.pause()
        acks = feed.acks
        feed.put("x", told=[0, 39])
        assert feed.acks == acks + 1
        feed.put("x", told=[])
        assert feed.acks == acks + 2


@pytest.mark.parametrize(("columns", "rows"), [(20, 5), (39, 9), (41, 11), (200, 60)])
async def test_a_terminal_of_another_size_fills_its_place_exactly(columns: int, rows: int) -> None:
    feed = FakeFeed(columns, rows)
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        feed.put(*("x" * columns for _ in range(rows)))
        await pilot.pause()
        for y in range(10):
            text = shown(app, y).text
            assert len(text) == 40
            assert text.count("x") == (min(columns, 40) if y < rows else 0)


async def test_the_cursor_fills_with_focus_and_is_a_line_without() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        feed.cursor = Cursor(2, 1)
        feed.put("abc", "漢字字".ljust(37))

        def style_at(x: int) -> tuple[bool, bool]:
            (segment, *_) = shown(app, 1).crop(x, x + 2)
            return bool(segment.style and segment.style.reverse), bool(
                segment.style and segment.style.underline
            )

        app.query_one(Button).focus()
        await pilot.pause()
        assert style_at(2) == (False, True)
        await focused(pilot, app)
        assert style_at(2) == (True, False)
        assert style_at(4) == (False, False)
        feed.cursor = Cursor(2, 1, wide=True)
        feed.put("abc", "漢字字".ljust(37))
        await pilot.pause()
        assert shown(app, 1).crop(2, 4).text == "字"
        feed.cursor = None
        feed.put("abc", "漢字字".ljust(37))
        await pilot.pause()
        assert style_at(2) == (False, False)


async def test_the_real_cursor_is_where_input_methods_look() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        feed.cursor = Cursor(7, 3)
        feed.put("x")
        await pilot.pause()
        assert app.cursor_position == app.view.region.offset + Offset(7, 3)


async def test_the_pace_follows_focus_and_sight() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        app.query_one(Button).focus()
        await pilot.pause()
        feed.calls.clear()
        await focused(pilot, app)
        app.query_one(Button).focus()
        await pilot.pause()
        app.view.display = False
        await pilot.pause()
        app.view.display = True
        await pilot.pause()
        assert feed.told("rate") == ["focused", "visible", "hidden", "visible"]
        assert feed.told("focus")[:2] == [True, False]


async def test_a_terminal_that_another_screen_covers_is_hidden_but_not_below_a_dialog() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        view = app.view
        feed.calls.clear()
        await app.push_screen(ModalScreen[None]())
        await pilot.pause()
        assert "hidden" not in feed.told("rate")
        await app.push_screen(Screen[None]())
        await pilot.pause()
        assert feed.told("rate")[-1] == "hidden"
        await app.pop_screen()
        await pilot.pause()
        assert feed.told("rate")[-1] != "hidden"
        await app.pop_screen()
        await pilot.pause()
        assert view.has_focus
        assert feed.told("rate")[-1] == "focused"


async def test_sizes_are_told_once_they_rest() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: feed.told("resize") == [(40, 10)])
        feed.calls.clear()
        for width in range(41, 60):
            app.view.styles.width = width
            await pilot.pause()
        await until(pilot, lambda: feed.told("resize")[-1:] == [(59, 10)])
        assert len(feed.told("resize")) < 8


async def test_a_view_of_no_size_says_nothing() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await pilot.pause(0.15)
        feed.calls.clear()
        app.view.styles.width = 0
        await pilot.pause(0.15)
        assert feed.told("resize") == []


async def test_another_feed_takes_the_place_of_the_first() -> None:
    first, second = FakeFeed(), FakeFeed()
    app = TerminalApp(first)
    async with app.run_test() as pilot:
        first.put("first")
        second.put("second")
        await pilot.pause()
        app.view.attach(second)
        await pilot.pause()
        assert shown(app, 0).text.rstrip() == "second"
        assert first.listener is None
        assert first.told("rate")[-1] == "hidden"
        assert second.listener is app.view
        app.view.attach(None)
        await pilot.pause()
        assert shown(app, 0).text.strip() == ""
        await pilot.press("x")
        app.view.paste("x")
        assert app.view.feed is None


async def test_a_view_that_goes_leaves_the_feed() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test():
        await app.view.remove()
        assert feed.listener is None
        assert feed.told("rate")[-1] == "hidden"


async def test_a_view_that_goes_after_the_next_one_came_takes_nothing_with_it() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        second = TerminalView(feed, id="two")
        await app.mount(second)
        await app.view.remove()
        assert feed.listener is second
        assert feed.told("rate")[-1] != "hidden"
        await pilot.pause()
        acks = feed.acks
        feed.put("x")
        await until(pilot, lambda: feed.acks > acks)


async def test_what_the_guest_asks_for_is_told_and_not_done() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        view = app.view
        view.feed_clipboard("secret")
        view.feed_title("[bold]title")
        view.feed_bell()
        view.feed_notified("a", "b")
        view.feed_state("ended", 3, "The program ended with status 3.")
        await pilot.pause()
        assert names(app) == [
            "ClipboardRequested", "TitleChanged", "Bell", "Notified", "StateChanged",
        ]  # fmt: skip
        assert app.clipboard == ""
        assert view.has_class("-stale")
        view.feed_state("live", None, "")
        assert not view.has_class("-stale")


async def test_scrolling_is_told() -> None:
    feed = FakeFeed()
    app = TerminalApp(feed)
    seen: list[Scroll] = []
    async with app.run_test(message_hook=lambda m: _note_scroll(m, seen)) as pilot:
        feed.scroll = Scroll(5, 100, False)
        feed.put("x", told=[])
        await pilot.pause()
        assert seen[-1] == Scroll(5, 100, False)


def _note_scroll(message: Message, seen: list[Scroll]) -> None:
    if isinstance(message, TerminalView.Scrolled) and message.view.feed is not None:
        seen.append(message.view.feed.scroll)
