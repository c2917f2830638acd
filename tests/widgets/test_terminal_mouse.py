"""The mouse on a terminal: each gesture of the table, and a guest that tracks the mouse itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.events import (
    MouseDown,
    MouseMove,
    MouseScrollDown,
    MouseScrollUp,
    MouseUp,
)
from textual.widgets import Button

from tests.doubles.pilots import until
from tests.doubles.terminal_app import GrantingFeed, TerminalApp, finished, focused, mouse, names
from widgets.copy_keys import MOUSE_GESTURES
from widgets.terminal import TerminalView
from widgets.terminal_feed import Cursor, Modes, MouseInput, View

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.pilot import Pilot

    from widgets.terminal_feed import MouseTracking

    Scene = Callable[[Pilot[None], TerminalApp, GrantingFeed], Awaitable[None]]

OURS = ("select", "select_to", "select_none", "mouse", "scroll", "paste", "text", "key")


async def drag(
    pilot: Pilot[None], *cells: tuple[int, int], shift: bool = False, alt: bool = False
) -> None:
    """Press at the first cell, move over the others, release at the last."""
    await mouse(pilot, MouseDown, *cells[0], 1, shift=shift, alt=alt)
    for cell in cells[1:]:
        await mouse(pilot, MouseMove, *cell, 1, shift=shift, alt=alt)
    await mouse(pilot, MouseUp, *cells[-1], 1, shift=shift, alt=alt)


async def press(pilot: Pilot[None], x: int, y: int, button: int = 1, times: int = 1) -> None:
    for _ in range(times):
        await mouse(pilot, MouseDown, x, y, button)
        await mouse(pilot, MouseUp, x, y, button)


async def copied(app: TerminalApp) -> list[str]:
    await finished(app)
    return [it.text for it in app.of(TerminalView.Copied) if isinstance(it, TerminalView.Copied)]


async def click(pilot: Pilot[None], app: TerminalApp, feed: GrantingFeed) -> None:
    app.query_one(Button).focus()
    feed.view = View(selected=True)
    await press(pilot, 3, 2)
    assert app.view.has_focus
    assert feed.asked(*OURS) == [("select_none",)]
    assert await copied(app) == []
    feed.calls.clear()
    await press(pilot, 7, 4)
    assert feed.asked(*OURS) == []


async def drag_cells(pilot: Pilot[None], app: TerminalApp, feed: GrantingFeed) -> None:
    await drag(pilot, (3, 2), (3, 2), (5, 2), (8, 4), (8, 4))
    assert feed.asked(*OURS) == [
        ("select", 3, 2, "cell", False), ("select_to", 5, 2), ("select_to", 8, 4),
    ]  # fmt: skip
    assert await copied(app) == ["the text"]
    assert feed.view.selected, "the highlight stays"


async def drag_block(pilot: Pilot[None], app: TerminalApp, feed: GrantingFeed) -> None:
    await drag(pilot, (3, 2), (8, 4), alt=True)
    assert feed.asked(*OURS) == [("select", 3, 2, "cell", True), ("select_to", 8, 4)]
    assert await copied(app) == ["the text"]


async def double_click(pilot: Pilot[None], app: TerminalApp, feed: GrantingFeed) -> None:
    await press(pilot, 3, 2)
    await drag(pilot, (3, 2), (9, 2))
    assert feed.asked(*OURS) == [("select", 3, 2, "word", False), ("select_to", 9, 2)]
    assert await copied(app) == ["the text"]


async def triple_click(pilot: Pilot[None], app: TerminalApp, feed: GrantingFeed) -> None:
    await press(pilot, 3, 2, times=3)
    assert feed.asked(*OURS) == [("select", 3, 2, "word", False), ("select", 3, 2, "line", False)]
    assert (await copied(app))[-1] == "the text"
    feed.calls.clear()
    await press(pilot, 3, 2)
    assert feed.asked(*OURS) == [("select_none",)], "a fourth press begins anew"


async def drag_with_shift(pilot: Pilot[None], app: TerminalApp, feed: GrantingFeed) -> None:
    feed.modes = Modes(mouse="any")
    await drag(pilot, (3, 2), (8, 4), shift=True)
    assert feed.asked(*OURS) == [("select", 3, 2, "cell", False), ("select_to", 8, 4)]
    assert await copied(app) == ["the text"]


async def middle_click(pilot: Pilot[None], app: TerminalApp, feed: GrantingFeed) -> None:
    app.copy_to_clipboard("kept")
    await press(pilot, 3, 2, button=2)
    assert feed.asked(*OURS) == [("paste", "kept")]


async def click_on_link(pilot: Pilot[None], app: TerminalApp, feed: GrantingFeed) -> None:
    feed.links[3, 2] = "https://docs.example/page"
    await mouse(pilot, MouseMove, 3, 2, ctrl=True)
    assert app.of(TerminalView.LinkClicked) == []
    await mouse(pilot, MouseDown, 3, 2, 1, ctrl=True)
    await mouse(pilot, MouseUp, 3, 2, 1, ctrl=True)
    (clicked,) = app.of(TerminalView.LinkClicked)
    assert isinstance(clicked, TerminalView.LinkClicked)
    assert (clicked.uri, clicked.view) == ("https://docs.example/page", app.view)
    assert feed.asked(*OURS) == []
    await mouse(pilot, MouseDown, 4, 2, 1, ctrl=True)
    await mouse(pilot, MouseUp, 4, 2, 1, ctrl=True)
    await press(pilot, 3, 2)
    assert len(app.of(TerminalView.LinkClicked)) == 1


async def turn_wheel(pilot: Pilot[None], app: TerminalApp, feed: GrantingFeed) -> None:
    await mouse(pilot, MouseScrollUp, 1, 2)
    await mouse(pilot, MouseScrollDown, 1, 2)
    assert feed.told("mouse") == [
        MouseInput("scroll_up", 1, 2), MouseInput("scroll_down", 1, 2),
    ]  # fmt: skip


async def turn_wheel_with_shift(pilot: Pilot[None], app: TerminalApp, feed: GrantingFeed) -> None:
    feed.modes = Modes(mouse="click")
    await mouse(pilot, MouseScrollUp, 1, 2, shift=True)
    await mouse(pilot, MouseScrollDown, 1, 2, shift=True)
    assert feed.asked(*OURS) == [("scroll", -3), ("scroll", 3)]


GESTURES: dict[str, Scene] = {
    "click": click,
    "drag": drag_cells,
    "alt+drag": drag_block,
    "double click": double_click,
    "triple click": triple_click,
    "shift+drag": drag_with_shift,
    "middle click": middle_click,
    "ctrl+click": click_on_link,
    "wheel": turn_wheel,
    "shift+wheel": turn_wheel_with_shift,
}


def test_each_gesture_of_the_table_is_tried_here() -> None:
    assert set(GESTURES) == {it.gesture for it in MOUSE_GESTURES}


@pytest.mark.parametrize("gesture", [it.gesture for it in MOUSE_GESTURES])
async def test_a_gesture(gesture: str) -> None:
    feed = GrantingFeed()
    feed.selected = "the text"
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        feed.calls.clear()
        app.heard.clear()
        await GESTURES[gesture](pilot, app, feed)
        assert app.mouse_captured is None


# -- drags ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("y", "to"), [(-1, -1), (10, 10)])
async def test_a_drag_over_an_edge_moves_the_page_until_it_is_back(y: int, to: int) -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await mouse(pilot, MouseDown, 3, 4, 1)
        await mouse(pilot, MouseMove, 6, y, 1)
        await until(pilot, lambda: len(feed.told("select_to")) >= 3)
        assert set(feed.told("select_to")) == {(6, to)}
        await mouse(pilot, MouseMove, 6, 4, 1)
        assert feed.told("select_to")[-1] == (6, 4)
        steps = len(feed.told("select_to"))
        await pilot.pause(0.15)
        assert len(feed.told("select_to")) == steps
        await mouse(pilot, MouseMove, 6, y, 1)
        await mouse(pilot, MouseUp, 6, y, 1)
        steps = len(feed.told("select_to"))
        await pilot.pause(0.15)
        assert len(feed.told("select_to")) == steps, "the page moves on after the release"


async def test_a_drag_far_outside_moves_faster() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await mouse(pilot, MouseDown, 3, 4, 1)
        await mouse(pilot, MouseMove, 6, 20, 1)
        await until(pilot, lambda: len(feed.told("select_to")) >= 5)
        await mouse(pilot, MouseUp, 6, 20, 1)
        steps = len(feed.told("select_to"))
        assert steps % 5 == 0


async def test_a_drag_inside_a_larger_view_stays_on_the_terminal() -> None:
    feed = GrantingFeed(20, 5)
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await drag(pilot, (3, 2), (30, 8))
        assert feed.asked(*OURS) == [("select", 3, 2, "cell", False), ("select_to", 19, 4)]


async def test_a_view_lower_than_the_terminal_points_at_what_it_shows() -> None:
    feed = GrantingFeed(40, 30)
    feed.cursor = Cursor(0, 24)
    feed.links[3, 17] = "https://a.example/"
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        feed.put("x")
        await pilot.pause()
        assert app.view.top == 15
        await drag(pilot, (3, 2), (4, 3))
        assert feed.asked(*OURS) == [("select", 3, 17, "cell", False), ("select_to", 4, 18)]
        await mouse(pilot, MouseDown, 3, 2, 1, ctrl=True)
        assert len(app.of(TerminalView.LinkClicked)) == 1


async def test_two_slow_or_distant_presses_are_no_double_click(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await press(pilot, 3, 2)
        await press(pilot, 4, 2)
        monkeypatch.setattr("widgets.terminal_mouse.CHAIN_S", 0.0)
        await press(pilot, 4, 2)
        assert feed.asked("select") == []


async def test_the_wheel_during_a_drag_leaves_its_end_to_the_next_move() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await mouse(pilot, MouseDown, 3, 4, 1)
        await mouse(pilot, MouseMove, 6, 4, 1)
        await mouse(pilot, MouseScrollUp, 6, 4)
        await mouse(pilot, MouseMove, 6, 4, 1)
        assert feed.told("select_to") == [(6, 4), (6, 4)]
        await mouse(pilot, MouseUp, 6, 4, 1)


async def test_a_drag_ends_with_its_feed() -> None:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await mouse(pilot, MouseDown, 3, 4, 1)
        await mouse(pilot, MouseMove, 6, 12, 1)
        app.view.attach(None)
        assert app.mouse_captured is None
        steps = len(feed.told("select_to"))
        await pilot.pause(0.1)
        await mouse(pilot, MouseMove, 6, 4, 1)
        await mouse(pilot, MouseUp, 6, 4, 1)
        assert len(feed.told("select_to")) == steps
        assert names(app) == []


# -- a guest that tracks the mouse ----------------------------------------------------------------


@pytest.mark.parametrize("button", [1, 2, 3])
@pytest.mark.parametrize(("tracking", "moves"), [("click", 0), ("drag", 1), ("any", 3)])
async def test_a_guest_that_tracks_the_mouse_gets_it(
    button: int, tracking: MouseTracking, moves: int
) -> None:
    feed = GrantingFeed()
    feed.links[3, 2] = "https://a.example/"
    feed.modes = Modes(mouse=tracking)
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        app.copy_to_clipboard("kept")
        await mouse(pilot, MouseMove, 2, 2)
        await mouse(pilot, MouseDown, 3, 2, button, ctrl=True, alt=True)
        await mouse(pilot, MouseMove, 5, 2, button)
        await mouse(pilot, MouseUp, 5, 12, button)
        await mouse(pilot, MouseMove, 6, 2)
        told = feed.asked(*OURS)
        assert {call[0] for call in told} == {"mouse"}
        events = [it for it in feed.told("mouse") if isinstance(it, MouseInput)]
        assert MouseInput("press", 3, 2, button, alt=True, ctrl=True) in events
        assert MouseInput("release", 5, 9, button) in events
        moved = [it for it in events if it.action == "move"]
        assert len(moved) == moves
        if tracking == "drag":
            assert moved == [MouseInput("move", 5, 2, button)]
        if tracking == "any":
            assert [it.button for it in moved] == [0, button, 0]
        assert app.mouse_captured is None
        assert app.of(TerminalView.LinkClicked) == []


async def test_two_buttons_are_both_released() -> None:
    feed = GrantingFeed()
    feed.modes = Modes(mouse="click")
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await mouse(pilot, MouseDown, 3, 2, 1)
        await mouse(pilot, MouseDown, 3, 2, 3)
        await mouse(pilot, MouseUp, 3, 2, 1)
        assert app.mouse_captured is app.view
        await mouse(pilot, MouseUp, 3, 2, 3)
        assert app.mouse_captured is None
        events = [it for it in feed.told("mouse") if isinstance(it, MouseInput)]
        assert [(it.action, it.button) for it in events] == [
            ("press", 1), ("press", 3), ("release", 1), ("release", 3),
        ]  # fmt: skip


@pytest.mark.parametrize("what", ["copy mode", "mirror"])
async def test_copy_mode_and_mirrors_keep_the_mouse_from_the_guest(what: str) -> None:
    feed = GrantingFeed()
    feed.modes = Modes(mouse="any")
    feed.mirrored = what == "mirror"
    app = TerminalApp(feed)
    async with app.run_test() as pilot:
        await focused(pilot, app)
        if what == "copy mode":
            await pilot.press("ctrl+g", "left_square_bracket")
        await drag(pilot, (3, 2), (8, 4))
        await mouse(pilot, MouseScrollUp, 1, 2)
        await mouse(pilot, MouseMove, 1, 3)
        assert feed.asked(*OURS) == [
            ("select", 3, 2, "cell", False), ("select_to", 8, 4), ("scroll", -3),
        ]  # fmt: skip
