"""What is remembered of the fleet screen, and how it comes up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from app.services.layouts import Layout, Layouts, read_layout
from tests.doubles.fleet import ALL, USUAL, WIDE, Remembering, fleet_of, shown, with_panes
from tests.doubles.pilots import press, settle, until
from tests.doubles.scenes import WORKSPACE, crowd, workstation

if TYPE_CHECKING:
    from pathlib import Path

    from textual.widget import Widget

# What is remembered


async def test_how_the_screen_was_left_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "layouts"
    app, _, _ = workstation(crowd(9), layouts=Layouts(folder))
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        await press(pilot, "7", "f12", "o", "z")
    left = read_layout(folder, str(WORKSPACE))
    assert (left.panes, left.zoomed, left.order, left.current) == (4, True, "who needs me", "s7")
    assert set(left.places) >= {"s7"}
    app, _, _ = workstation(crowd(9), layouts=Layouts(folder))
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert shown(app) == ["s7"]
        assert fleet_of(app).order == "who needs me"
        await press(pilot, "z")
        assert tuple(shown(app)) == left.places


@pytest.mark.parametrize(
    "layout",
    [
        Layout(panes=3),
        Layout(panes=7, panes_low=8),
        Layout(order="no such order"),
        Layout(places=("gone",) * 9, current="gone"),
        Layout(zoomed=True, current="gone"),
        Layout(places=("s1", "s1", "\x1b[2J", "")),
    ],
)
async def test_a_layout_that_makes_no_sense_is_used_as_far_as_it_does(layout: Layout) -> None:
    layouts = Remembering(layout)
    app, _, _ = workstation(crowd(4), layouts=layouts)
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        found = shown(app)
        assert "s1" in found
        assert len(found) == len(set(found)) == (1 if layout.zoomed else 2)
        await press(pilot, "plus", "j", "2", "x")
        assert app.is_running
        assert all(left.panes in (1, 2, 4, 6, 9) for left in layouts.written)


async def test_nothing_is_written_while_nothing_changes() -> None:
    layouts = Remembering(Layout(places=("s1", "s2"), current="s1"))
    app, _, _ = workstation(crowd(4), layouts=layouts)
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        fleet_of(app).show_panes()
        assert layouts.written == []
        await press(pilot, "plus")
        assert [layout.panes for layout in layouts.written] == [4]


# How long it takes


async def test_one_terminal_is_opened_in_a_turn_the_current_one_first() -> None:
    """Opening one takes some milliseconds; nine at once would be seen and felt."""
    app, _, terminals = workstation(crowd(9), layouts=Remembering(Layout(panes=9, current="s5")))
    make, opened = terminals.view, list[tuple[int, str]]()
    turn, done = 0, False

    def view(session_id: str) -> Widget:
        opened.append((turn, session_id))
        return make(session_id)

    def count() -> None:
        nonlocal turn
        turn += 1
        if not done:
            loop.call_soon(count)

    loop = asyncio.get_running_loop()
    loop.call_soon(count)
    terminals.view = view  # type: ignore[method-assign]  # it counts and passes on
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: len(opened) == 9)
        done = True
        turns = [at for at, _ in opened]
        assert len(turns) == len(set(turns))
        assert opened[0][1] == "s5"
        assert shown(app) == ALL
