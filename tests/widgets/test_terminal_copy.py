"""Copy mode by its keys: each one of the table, counts, copying, and whose keys they are when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.events import Paste

from tests.doubles.pilots import until
from tests.doubles.terminal_app import GrantingFeed, TerminalApp, finished, focused, names, shown
from widgets.copy_keys import COPY_KEY, COPY_KEYS, PREFIX_KEY
from widgets.terminal import TerminalView
from widgets.terminal_feed import Cursor, Scroll, View

if TYPE_CHECKING:
    from textual.pilot import Pilot

BACK = "left_square_bracket"
Call = tuple[object, ...]

WANTED: dict[str, Call] = {
    "h": ("copy_move", "left", None),
    "left": ("copy_move", "left", None),
    "j": ("copy_move", "down", None),
    "down": ("copy_move", "down", None),
    "k": ("copy_move", "up", None),
    "up": ("copy_move", "up", None),
    "l": ("copy_move", "right", None),
    "right": ("copy_move", "right", None),
    "w": ("copy_move", "word_next", None),
    "b": ("copy_move", "word_back", None),
    "e": ("copy_move", "word_end", None),
    "0": ("copy_move", "line_start", None),
    "home": ("copy_move", "line_start", None),
    "circumflex_accent": ("copy_move", "line_text", None),
    "dollar_sign": ("copy_move", "line_end", None),
    "end": ("copy_move", "line_end", None),
    "left_curly_bracket": ("copy_move", "paragraph_back", None),
    "right_curly_bracket": ("copy_move", "paragraph_next", None),
    "ctrl+u": ("copy_move", "half_up", None),
    "ctrl+d": ("copy_move", "half_down", None),
    "ctrl+b": ("copy_move", "page_up", None),
    "pageup": ("copy_move", "page_up", None),
    "ctrl+f": ("copy_move", "page_down", None),
    "pagedown": ("copy_move", "page_down", None),
    "g": ("copy_move", "top", None),
    "G": ("copy_move", "bottom", None),
    "H": ("copy_move", "screen_top", None),
    "M": ("copy_move", "screen_middle", None),
    "L": ("copy_move", "screen_bottom", None),
    "left_square_bracket": ("copy_move", "prompt_back", None),
    "right_square_bracket": ("copy_move", "prompt_next", None),
    "percent_sign": ("copy_move", "bracket", None),
    **{digit: ("copy_move", "down", int(digit)) for digit in "123456789"},
    "v": ("copy_mark", "cells"),
    "space": ("copy_mark", "cells"),
    "V": ("copy_mark", "lines"),
    "R": ("copy_mark", "block"),
    "ctrl+v": ("copy_mark", "block"),
    "o": ("copy_mark", "swap"),
    "y": ("copy_mode", False),
    "enter": ("copy_mode", False),
    "slash": ("search", "x", False),
    "question_mark": ("search", "x", True),
    "n": ("find_next", False),
    "N": ("find_next", True),
    "escape": ("copy_mode", False),
    "q": ("copy_mode", False),
}
"""What the engine is asked for by each key; a digit is followed by `j`, a search by `x`."""


async def copying(pilot: Pilot[None], app: TerminalApp, feed: GrantingFeed) -> None:
    """Enter copy mode and forget what that took."""
    await focused(pilot, app)
    await pilot.press("ctrl+g", BACK)
    assert app.view.copying
    feed.calls.clear()
    app.heard.clear()


def test_each_key_of_the_table_is_tried_here() -> None:
    assert set(WANTED) == set(COPY_KEY)
    assert sum(len(row.keys) for row in COPY_KEYS) == len(COPY_KEY), "a key with two meanings"
    assert all(row.what for row in COPY_KEYS)


async def test_what_each_key_of_copy_mode_does() -> None:
    app = TerminalApp()
    more = {"slash": ["x"], "question_mark": ["x"], **{d: ["j"] for d in "123456789"}}
    async with app.run_test() as pilot:
        for key, wanted in WANTED.items():
            feed = GrantingFeed()
            app.view.attach(feed)
            await copying(pilot, app, feed)
            await pilot.press(key, *more.get(key, ()))
            assert (key, feed.calls) == (key, [wanted])
        assert app.noted == []


async def test_any_other_key_does_nothing_in_copy_mode() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await copying(pilot, app, feed)
        for key in ("a", "Z", "f5", "tab", "ctrl+c", "ctrl+q", "delete", "alt+x"):
            await pilot.press(key)
            assert (key, feed.calls, app.noted) == (key, [], [])
        assert app.view.copying


@pytest.mark.parametrize(
    ("keys", "call"),
    [
        (["1", "2", "j"], ("copy_move", "down", 12)),
        (["1", "0", "w"], ("copy_move", "word_next", 10)),
        (["9"] * 6 + ["k"], ("copy_move", "up", 9999)),
        (["3", "a", "k"], ("copy_move", "up", None)),
        (["3", "v"], ("copy_mark", "cells")),
        (["5", "escape", "k"], ("copy_move", "up", None)),
        (["0"], ("copy_move", "line_start", None)),
    ],
)
async def test_counts(keys: list[str], call: Call) -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await copying(pilot, app, feed)
        await pilot.press(*keys)
        assert feed.calls == [call]
        assert app.view.copying


async def test_a_count_repeats_a_search_and_is_seen_while_it_is_typed() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await copying(pilot, app, feed)
        await pilot.press("3")
        assert shown(app, 9).text.endswith(" 3 COPY 0/0 ")
        await pilot.press("n")
        assert feed.calls == [("find_next", False)] * 3
        assert shown(app, 9).text.endswith(" COPY 0/0 ")


@pytest.mark.parametrize(
    ("key", "calls"),
    [
        ("left_square_bracket", [("copy_mode", True)]),
        ("pageup", [("copy_mode", True), ("copy_move", "page_up", None)]),
        ("pagedown", [("copy_mode", True), ("copy_move", "page_down", None)]),
        ("f", [("copy_mode", True)]),
        ("right_square_bracket", [("paste", "kept\ntext")]),
    ],
)
async def test_keys_after_the_prefix(key: str, calls: list[Call]) -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        app.copy_to_clipboard("kept\ntext")
        await focused(pilot, app)
        feed.calls.clear()
        await pilot.press("ctrl+g", key)
        assert feed.calls == calls
        assert app.of(TerminalView.PrefixCommand) == []
        assert names(app)[:2] == ["PrefixPressed", "PrefixCancelled"]
        assert not app.view.has_class("-prefix")
        assert app.view.copying == (key != "right_square_bracket")
        assert shown(app, 9).text.startswith("?") == (key == "f")


def test_each_key_after_the_prefix_is_tried_here() -> None:
    mark = next(m for m in vars(test_keys_after_the_prefix)["pytestmark"] if m.args)
    assert {case[0] for case in mark.args[1]} == set(PREFIX_KEY)


async def test_in_copy_mode_the_prefix_moves_on_without_entering_again() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await copying(pilot, app, feed)
        await pilot.press("ctrl+g", "pageup")
        assert feed.calls == [("copy_move", "page_up", None)]


@pytest.mark.parametrize("key", ["y", "enter"])
async def test_what_is_selected_is_copied_before_copy_mode_ends(key: str) -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    asked: list[bool] = []

    async def selected_text() -> str:
        asked.append(feed.view.selected)
        return "two\nlines"

    feed.selected_text = selected_text  # type: ignore[method-assign]  # this feed's own answer
    async with app.run_test() as pilot:
        await copying(pilot, app, feed)
        await pilot.press("V", key)
        await finished(app)
        await pilot.pause()
        assert asked == [True], "the selection was gone before its text was asked for"
        assert feed.calls == [("copy_mark", "lines"), ("copy_mode", False)]
        (copied,) = app.of(TerminalView.Copied)
        assert isinstance(copied, TerminalView.Copied)
        assert (copied.text, copied.view) == ("two\nlines", app.view)
        assert not app.view.copying


@pytest.mark.parametrize("error", [TimeoutError(), ConnectionError("gone")])
async def test_a_copy_that_is_not_to_be_had_is_said(error: Exception) -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)

    async def selected_text() -> str:
        raise error

    feed.selected_text = selected_text  # type: ignore[method-assign]  # this feed's own answer
    async with app.run_test() as pilot:
        await copying(pilot, app, feed)
        await pilot.press("v", "y")
        await finished(app)
        await pilot.pause()
        assert app.of(TerminalView.Copied) == []
        (refused,) = app.of(TerminalView.InputRefused)
        assert isinstance(refused, TerminalView.InputRefused)
        assert refused.text == "Nothing was copied: no answer."


async def test_nothing_selected_copies_nothing() -> None:
    feed = GrantingFeed()
    feed.selected = "must not be asked for"
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await copying(pilot, app, feed)
        await pilot.press("y")
        await finished(app)
        await pilot.pause()
        assert names(app) == ["CopyModeChanged"]


async def test_escape_takes_the_selection_away_first() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await copying(pilot, app, feed)
        await pilot.press("v", "escape")
        assert feed.calls == [("copy_mark", "cells"), ("copy_mark", "none")]
        assert app.view.copying
        await pilot.press("escape")
        assert not app.view.copying


async def test_keys_are_the_views_before_the_engine_has_answered() -> None:
    feed = GrantingFeed()
    slow = GrantingFeed.copy_mode
    app = TerminalApp(feed)

    def ask_only(on: bool) -> None:
        feed.calls.append(("copy_mode", on))

    feed.copy_mode = ask_only  # type: ignore[method-assign]  # this feed's own answer
    async with app.run_test() as pilot:
        await focused(pilot, app)
        await pilot.press("ctrl+g", BACK)
        feed.put("a frame from before", told=[])
        await pilot.press("j")
        assert feed.told("key") == []
        slow(feed, True)
        await pilot.press("q")
        feed.put("a frame from before", told=[])
        await pilot.press("x")
        assert feed.told("key") == ["x"]


async def test_copy_mode_that_the_engine_does_not_grant_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("widgets.terminal_copying.GRANT_S", 0.5)
    feed = GrantingFeed()
    feed.copy_mode = lambda on: None  # type: ignore[method-assign]  # this feed's own answer
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        await pilot.press("ctrl+g", BACK)
        assert app.view.copying
        await until(pilot, lambda: not app.view.copying)
        await pilot.press("x")
        assert feed.told("key") == ["x"]


async def test_copy_mode_ends_with_its_engine_its_feed_and_when_the_engine_says_so() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await copying(pilot, app, feed)
        app.view.feed_state("restarting", None, "")
        feed.view = View()
        assert not app.view.copying
        await copying(pilot, app, feed)
        feed.view = View()
        feed.put("x", told=[])
        assert not app.view.copying
        await copying(pilot, app, feed)
        app.view.attach(GrantingFeed())
        assert not app.view.copying
        app.view.attach(feed)
        assert app.view.copying, "the page of this feed still stands still"


async def test_where_keys_go_is_told() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        assert app.view.is_guests("x")
        await pilot.press("ctrl+g", BACK)
        assert names(app)[-1] == "CopyModeChanged"
        assert app.view.has_class("-copying")
        assert not app.view.is_guests("x")
        app.heard.clear()
        await pilot.press("slash", "x", "enter", "slash", "escape")
        assert names(app) == ["CopyModeChanged"] * 4
        await pilot.press("q")
        assert names(app) == ["CopyModeChanged"] * 5
        assert not app.view.has_class("-copying")


async def test_pasting_ends_copy_mode() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await copying(pilot, app, feed)
        app.post_message(Paste("text"))
        await pilot.pause()
        assert feed.calls == [("copy_mode", False), ("paste", "text")]


async def test_a_mirror_sends_nothing_but_may_be_searched_and_copied() -> None:
    feed = GrantingFeed()
    feed.mirrored = True
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        app.copy_to_clipboard("text")
        await focused(pilot, app)
        await pilot.press("x", "enter", "ctrl+g", "ctrl+g", "ctrl+g", "right_square_bracket")
        app.post_message(Paste("text"))
        await pilot.pause()
        assert feed.asked("key", "paste", "text", "focus", "mouse") == []
        assert app.view.has_class("-mirrored")
        assert not app.view.has_keys
        await pilot.press("ctrl+g", BACK, "k")
        assert feed.asked("copy_move") == [("copy_move", "up", None)]
        await pilot.press("q")
        app.view.take_over()
        assert feed.told("take_over") == [()]
        feed.mirrored = False
        app.view.feed_mirrored(False)
        assert feed.calls[-1] == ("focus", True)
        await pilot.press("x")
        assert feed.told("key") == ["x"]
        assert not app.view.has_class("-mirrored")


# -- the mark -------------------------------------------------------------------------------------


async def test_the_mark_says_where_the_page_is() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        feed.put(*("x" * 40 for _ in range(10)))
        await copying(pilot, app, feed)
        feed.scroll = Scroll(2880, 3010, at_end=False)
        feed.put("x", told=[])
        await pilot.pause()
        line = shown(app, 9)
        assert line.text == "x" * 24 + " COPY 120/3000 ".rjust(16, "x")
        assert line.cell_length == 40
        await pilot.press("slash", "x", "enter")
        feed.scroll = Scroll(5, 20, at_end=False)
        feed.put("x", told=[])
        await pilot.pause()
        assert shown(app, 9).text.endswith("x 3 of 17  COPY 5/10 ")
        await pilot.press("q")
        assert shown(app, 9).text == "x" * 40


@pytest.mark.parametrize(("x", "y", "row"), [(39, 9, 0), (30, 9, 0), (5, 9, 9), (39, 0, 9)])
async def test_the_mark_never_covers_the_copy_cursor(x: int, y: int, row: int) -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        feed.put(*("x" * 40 for _ in range(10)))
        await copying(pilot, app, feed)
        feed.cursor = Cursor(x, y)
        feed.put(*("x" * 40 for _ in range(10)), told=[y])
        await pilot.pause()
        marked = [n for n in range(10) if "COPY" in shown(app, n).text]
        assert marked == [row]
        (under,) = shown(app, y).crop(x, x + 1)
        assert under.text == "x"
        assert under.style is not None
        assert under.style.reverse


@pytest.mark.parametrize("width", [1, 5, 6, 20, 27, 40])
async def test_the_mark_fits(width: int) -> None:
    feed = GrantingFeed(40, 10)
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        feed.put(*("x" * 40 for _ in range(10)))
        app.view.styles.width = width
        await copying(pilot, app, feed)
        feed.scroll = Scroll(2880, 3010, at_end=False)
        feed.put("x", told=[])
        await pilot.pause()
        text = shown(app, 9, width).text
        assert len(text) == width
        assert ("COPY" in text) == (width >= 6)
        assert ("120/3000" in text) == (width >= 25)
