"""Into panes and from one to the next by every key and click; what a pane says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.doubles.fleet import SMALL, USUAL, WIDE, fleet_of, owner, pane, shown, with_panes
from tests.doubles.pilots import press, screen_text, settle, until
from tests.doubles.scenes import crowd, sessions, workstation
from widgets.key_bar import KeyBar
from widgets.pane_header import PaneHeader
from widgets.terminal_feed import View

if TYPE_CHECKING:
    from app.ui.app import ClocheApp
    from tests.doubles.feed import FakeFeed

# Into panes and from one to the next


@pytest.mark.parametrize("form", ["f12 {}", "alt+{}", "ctrl+g {}"])
async def test_every_number_goes_into_its_session(form: str) -> None:
    app, _, terminals = workstation(crowd(9))
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        for number in (*range(2, 10), 1):
            await press(pilot, *form.format(number).split(), "x")
            assert owner(app) == f"s{number}"
            assert terminals.keys(f"s{number}") == ["x"]
            assert fleet_of(app).rail.current_key == f"s{number}"


async def test_a_number_that_no_session_has_says_so() -> None:
    app, _, _ = workstation(crowd(2))
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        await press(pilot, "7")
        notice = fleet_of(app).notice
        assert notice is not None
        assert notice.text == "There is no session 7."
        assert owner(app) == ""


async def test_tab_goes_round_the_panes_without_giving_keys_away() -> None:
    app, _, terminals = workstation(crowd(9))
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        seen: list[str | None] = []
        for key in ("tab", "tab", "tab", "tab", "shift+tab", "shift+tab"):
            await press(pilot, key)
            seen.append(fleet_of(app).rail.current_key)
        assert seen == ["s2", "s3", "s4", "s1", "s4", "s3"]
        assert owner(app) == ""
        assert [header.row.key for header in headers(app) if header.facts.current] == ["s3"]  # type: ignore[union-attr]  # None fails the test as well
        assert terminals.keys("s3") == []


def headers(app: ClocheApp) -> list[PaneHeader]:
    return [slot.query_one(PaneHeader) for slot in fleet_of(app).slots if slot.display]


async def test_after_the_prefix_tab_takes_the_keys_along() -> None:
    app, _, terminals = workstation(crowd(9))
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        await press(pilot, "enter", "tab", "ctrl+g", "tab", "x", "ctrl+g", "shift+tab", "y")
        assert terminals.keys("s1") == ["tab", "y"]
        assert terminals.keys("s2") == ["x"]
        assert [header.facts.active for header in headers(app)] == [True, False, False, False]


async def test_with_one_pane_tab_goes_through_all_sessions() -> None:
    app, _, _ = workstation(crowd(3))
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        seen = [shown(app)]
        for _ in range(3):
            await press(pilot, "tab")
            seen.append(shown(app))
        assert seen == [["s1"], ["s2"], ["s3"], ["s1"]]


async def test_clicks_on_a_pane_its_header_and_its_edge_give_it_the_keys() -> None:
    app, _, _ = workstation(crowd(4))
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        view = pane(app, "s3").view
        assert view is not None
        await pilot.click(view, offset=(5, 5))
        await settle(pilot)
        assert owner(app) == "s3"
        await pilot.click(pane(app, "s2").query_one(PaneHeader), offset=(4, 0))
        await settle(pilot)
        assert owner(app) == "s2"
        assert fleet_of(app).rail.current_key == "s2"
        edge = pane(app, "s4").region
        await pilot.click(offset=(edge.x, edge.y + 6))
        await settle(pilot)
        assert owner(app) == "s4"


async def test_a_click_on_a_stopped_session_shows_that_it_has_no_screen() -> None:
    app, _, _ = workstation(sessions())
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "ctrl+g", "3")
        assert owner(app) == ""
        assert fleet_of(app).home.has_focus
        notice = fleet_of(app).notice
        assert notice is not None
        assert "no machine" in notice.text
        await press(pilot, "1")
        assert owner(app) == "s1"
        await pilot.click(pane(app, "s3"), offset=(10, 10))
        await settle(pilot)
        assert fleet_of(app).rail.current_key == "s3"
        assert owner(app) == ""


# What a pane says


async def test_a_terminal_attached_elsewhere_is_watched_until_it_is_taken() -> None:
    app, _, terminals = workstation(crowd(2))
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        feed = terminals.feeds["s2"]
        feed.mirrored = True
        assert feed.listener is not None
        feed.listener.feed_mirrored(True)
        await settle(pilot)
        assert "⇄ attached elsewhere" in screen_text(pilot)
        await press(pilot, "2")
        bar = app.screen.query_one(KeyBar)
        assert bar.lead == ("⇄ add-tests is attached elsewhere", "warning")
        assert [hint.key for hint in bar.hints][:1] == ["ctrl+g enter"]
        assert owner(app) == "s2"
        assert feed.told("take_over") == []
        await press(pilot, "enter")
        assert not taken(feed)
        await press(pilot, "ctrl+g", "enter")
        assert taken(feed)
        feed.mirrored = False
        feed.listener.feed_mirrored(False)
        await settle(pilot)
        assert "attached elsewhere" not in screen_text(pilot)
        assert bar.lead == ("⌨ keys go to add-tests", "accent")


def taken(feed: FakeFeed) -> bool:
    return ("take_over",) in feed.calls


async def test_taking_by_a_click_on_the_hint() -> None:
    app, _, terminals = workstation(crowd(1))
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        terminals.feeds["s1"].mirrored = True
        await press(pilot, "1")
        bar = app.screen.query_one(KeyBar)
        assert bar.lead is not None
        await pilot.click(bar, offset=(len(bar.lead[0]) + 5, 0))
        await settle(pilot)
        assert taken(terminals.feeds["s1"])


async def test_the_header_shows_what_the_terminal_reports() -> None:
    app, _, terminals = workstation(crowd(2))
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        feed = terminals.feeds["s2"]
        assert feed.listener is not None
        feed.progress = (1, 50)
        feed.listener.feed_progress((1, 50))
        feed.title = "vim [bold]x"
        feed.listener.feed_title(feed.title)
        feed.listener.feed_bell()
        await until(pilot, lambda: "50%" in screen_text(pilot))
        assert "vim [bold]x" in screen_text(pilot)
        assert "♪" in screen_text(pilot)
        assert pane(app, "s2").query_one(PaneHeader).facts.marked
        await press(pilot, "2")
        await until(pilot, lambda: not pane(app, "s2").query_one(PaneHeader).facts.marked)


async def test_copy_mode_is_said_in_the_header_and_its_keys_below() -> None:
    app, _, terminals = workstation(crowd(1))
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        feed = terminals.feeds["s1"]
        feed.view = View(copying=True)
        feed.put("frozen")
        fleet_of(app).show_panes()
        fleet_of(app).refresh_keys()
        await settle(pilot)
        assert "copy mode" in screen_text(pilot)
        assert [hint.label for hint in app.screen.query_one(KeyBar).hints][:2] == ["select", "copy"]


async def test_trouble_is_known_when_a_pane_is_shown_again() -> None:
    app, _, terminals = workstation(crowd(4))
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        terminals.feeds["s1"].state = "broken"
        await press(pilot, "minus", "2", "f12", "1")
        assert pane(app, "s1").query_one(PaneHeader).facts.trouble == "cannot be shown"


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_where_the_keys_go_does_not_hang_on_colour(ascii_only: bool) -> None:
    app, _, _ = workstation(crowd(4), ascii_only=ascii_only)
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        await press(pilot, "2")
        lines = screen_text(pilot).splitlines()
        sign = "@" if ascii_only else "⌨"
        at = pane(app, "s2").region
        assert sign in lines[at.y][at.x : at.right]
        assert [line for line in lines[1:-1] if sign in line] == [lines[at.y]]
        assert lines[at.y][at.x].isascii() is ascii_only
