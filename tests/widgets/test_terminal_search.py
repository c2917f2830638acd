"""The line in which a search is typed: its keys, how it is drawn, and where on the view."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.events import Paste

from tests.doubles.terminal_app import GrantingFeed, TerminalApp, focused, shown
from widgets.copy_keys import SEARCH_KEY
from widgets.paint import Paint
from widgets.terminal_draw_ink import Ink
from widgets.terminal_feed import Mark, View
from widgets.terminal_search import MAX_NEEDLE, SearchLine, found_texts

if TYPE_CHECKING:
    from textual.pilot import Pilot

INK = Ink(Paint({}), "full")
Call = tuple[object, ...]

EDITS: dict[str, tuple[str, int]] = {
    "backspace": ("one tw", 6),
    "ctrl+h": ("one tw", 6),
    "delete": ("one two", 7),
    "ctrl+d": ("one two", 7),
    "ctrl+w": ("one ", 4),
    "alt+backspace": ("one ", 4),
    "ctrl+u": ("", 0),
    "left": ("one two", 6),
    "ctrl+b": ("one two", 6),
    "right": ("one two", 7),
    "ctrl+f": ("one two", 7),
    "home": ("one two", 0),
    "ctrl+a": ("one two", 0),
    "end": ("one two", 7),
    "ctrl+e": ("one two", 7),
}
"""What becomes of `one two` with the cursor at its end."""

ASKS: dict[str, list[Call]] = {
    "enter": [],
    "escape": [("search", "", False), ("copy_mode", False)],
    "ctrl+c": [("search", "", False), ("copy_mode", False)],
    "down": [("find_next", True)],
    "ctrl+n": [("find_next", True)],
    "up": [("find_next", False)],
    "ctrl+p": [("find_next", False)],
}
"""What the engine is asked for by the other keys, in a search begun with the prefix: one up."""


def test_each_key_of_the_table_is_tried_here() -> None:
    assert set(EDITS) | set(ASKS) == set(SEARCH_KEY)
    assert not set(EDITS) & set(ASKS)


@pytest.mark.parametrize("key", list(EDITS))
def test_a_key_that_edits(key: str) -> None:
    line = SearchLine()
    line.insert("one two")
    assert line.press(key, None) is None
    assert (line.text, line.at) == EDITS[key]


async def searching(pilot: Pilot[None], app: TerminalApp, feed: GrantingFeed) -> None:
    feed.put(*("x" * feed.columns for _ in range(feed.rows)))
    await focused(pilot, app)
    await pilot.press("ctrl+g", "f")
    feed.calls.clear()


async def test_what_each_key_that_acts_does() -> None:
    app = TerminalApp()
    async with app.run_test() as pilot:
        for key, asked in ASKS.items():
            feed = GrantingFeed()
            app.view.attach(feed)
            await searching(pilot, app, feed)
            await pilot.press("n", "e")
            assert feed.calls == [("search", "n", True), ("search", "ne", True)]
            feed.calls.clear()
            await pilot.press(key)
            assert (key, feed.calls) == (key, asked)
            open_still = key in ("down", "up", "ctrl+n", "ctrl+p")
            assert (app.view.copying_mode.line is not None) == open_still, key
            assert app.view.copying == (key not in ("escape", "ctrl+c")), key
        assert app.noted == []


async def test_typing_edits_the_search_and_enter_keeps_it() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await searching(pilot, app, feed)
        assert shown(app, 9).text == "?".ljust(40)
        await pilot.press(*"needle")
        assert shown(app, 9).text == "?needle   3 of 17".ljust(40)
        await pilot.press("backspace", "left", "T")
        assert feed.told("search")[-1] == ("needTl", True)
        await pilot.press("enter")
        assert shown(app, 9).text.endswith("x 3 of 17  COPY 0/0 ")
        feed.calls.clear()
        await pilot.press("n", "N")
        assert feed.calls == [("find_next", False), ("find_next", True)]
        assert feed.told("key") == []


async def test_in_a_search_up_the_arrows_keep_their_sense() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        await pilot.press("ctrl+g", "left_square_bracket", "question_mark", "x")
        assert shown(app, 9).text.startswith("?x")
        assert feed.told("search") == [("x", True)]
        # what is asked for is relative to the search: on (False) or back (True)
        await pilot.press("up", "down", "enter", "n", "N")
        assert feed.told("find_next") == [False, True, False, True]


async def test_an_empty_line_searches_the_last_text_again_and_backspace_closes_it() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        await pilot.press("ctrl+g", "left_square_bracket", "slash", "a", "enter")
        feed.calls.clear()
        await pilot.press("slash", "enter")
        assert feed.calls == [("search", "a", False)]
        feed.calls.clear()
        await pilot.press("slash", "backspace")
        assert feed.calls == [("search", "", False)]
        assert app.view.copying, "copy mode was there before the search"
        assert app.view.copying_mode.line is None


async def test_a_paste_goes_into_the_line_its_first_line_only() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await searching(pilot, app, feed)
        app.post_message(Paste("\nnee\x1b[31mdle\nmore"))
        await pilot.pause()
        assert feed.calls == [("search", "nee[31mdle", True)]


async def test_the_line_goes_to_the_top_while_the_match_is_below_it() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await searching(pilot, app, feed)
        feed.marked[9] = (Mark(2, 4, "match"),)
        await pilot.press("x")
        assert shown(app, 9).text.startswith("?x")
        feed.marked[9] = (Mark(2, 4, "current"),)
        await pilot.press("x")
        assert shown(app, 0).text.startswith("?xx")
        assert shown(app, 9).text.startswith("xxx")
        feed.marked.clear()
        await pilot.press("x")
        assert shown(app, 0).text.startswith("?xxx"), "it stays where it is"
        feed.marked[0] = (Mark(2, 4, "current"),)
        await pilot.press("x")
        assert shown(app, 9).text.startswith("?xxxx")
        await pilot.press("escape")
        assert shown(app, 9).text == "x" * 40


@pytest.mark.parametrize(
    ("needle", "text"),
    [
        ("needle", "?needle   3 of 17   "),
        ("a-longer-needle", "?er-needle   3 of 17"),
    ],
)
async def test_twenty_columns_are_enough(needle: str, text: str) -> None:
    feed = GrantingFeed(20, 10)
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        app.view.styles.width = 20
        await searching(pilot, app, feed)
        await pilot.press(*(key if key != "-" else "minus" for key in needle))
        assert shown(app, 9, 20).text == text


def test_how_much_was_found_is_said() -> None:
    assert found_texts(View(matches=17, match=3)) == ("3 of 17", "3/17")
    assert found_texts(View(matches=17)) == ("17 found", "17")
    assert found_texts(View()) == ("nothing", "none")
    assert found_texts(View(searching=True)) == ("searching", "…")
    assert found_texts(View(matches=17, match=3, searching=True)) == ("3 of 17+", "3/17+")


async def test_a_search_that_found_nothing_says_so_when_it_is_kept() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await searching(pilot, app, feed)
        await pilot.press("z", "enter")
        feed.view = replace(feed.view, matches=0, match=0)
        feed.put("x", told=[])
        await pilot.pause()
        assert shown(app, 9).text.endswith("x nothing  COPY 0/0 ")
        await pilot.press("slash", "escape")
        assert shown(app, 9).text.endswith("x COPY 0/0 ")


def test_a_needle_is_bounded() -> None:
    line = SearchLine()
    for _ in range(30):
        line.insert("0123456789")
    assert len(line.text) == line.at == MAX_NEEDLE
    line.press("x", "x")
    assert len(line.text) == MAX_NEEDLE


KEYS = [*SEARCH_KEY, "a", "漢", " ", "é", "f5", "tab"]


@given(
    st.lists(st.sampled_from(KEYS), max_size=60),
    st.integers(0, 45),
    st.builds(View, matches=st.integers(0, 99999), match=st.integers(0, 99999)),
)
def test_the_line_always_fits_and_shows_its_cursor(keys: list[str], width: int, view: View) -> None:
    line = SearchLine()
    for key in keys:
        line.press(key, key if len(key) == 1 else None)
        assert 0 <= line.at <= len(line.text)
    strip = line.draw(view, width, INK)
    assert sum(cell_len(text) for text, _, _ in strip) == strip.cell_length == width
    if width >= 4:
        cursors = [text for text, style, _ in strip if style and style.reverse]
        assert cursors == [line.text[line.at : line.at + 1] or " "]


def test_the_count_gives_way_to_the_needle() -> None:
    line = SearchLine()
    line.insert("needle")
    view = View(matches=4321, match=1234)
    assert line.draw(view, 30, INK).text.rstrip() == "/needle   1234 of 4321"
    assert line.draw(view, 18, INK).text.rstrip() == "/eedle   1234/4321"
    assert line.draw(view, 12, INK).text.rstrip() == "/needle"
    assert line.draw(replace(view, matches=0), 18, INK).text.rstrip() == "/needle   nothing"
