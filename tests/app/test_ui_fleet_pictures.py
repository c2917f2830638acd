"""How panes look in every number and size: pictures, compared as text and looked at by people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.ui.fleet_screen import FleetScreen
from tests.doubles.fleet import with_panes
from tests.doubles.pilots import press, settle, until
from tests.doubles.scenes import crowd, workstation
from tests.doubles.still import SIZES, Compare, hold_still
from widgets.terminal_feed import Scroll

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.pilot import Pilot


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_still(monkeypatch)


def panes(count: int, *keys: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Return what shows so many panes and then presses keys."""

    async def before(pilot: Pilot[None]) -> None:
        await with_panes(pilot, count)
        await press(pilot, *keys)

    return before


@pytest.mark.parametrize("count", [1, 2, 4, 6, 9])
@pytest.mark.parametrize("size", SIZES)
def test_panes(snap_compare: Compare, size: str, count: int) -> None:
    app, _, _ = workstation(crowd(9))
    assert snap_compare(app, terminal_size=SIZES[size], run_before=panes(count))


@pytest.mark.parametrize("size", SIZES)
def test_panes_in_ascii_with_the_keys_in_one(snap_compare: Compare, size: str) -> None:
    app, _, _ = workstation(crowd(9), ascii_only=True)
    assert snap_compare(app, terminal_size=SIZES[size], run_before=panes(4, "2"))


@pytest.mark.parametrize("size", SIZES)
def test_panes_without_colours(
    snap_compare: Compare, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app, _, _ = workstation(crowd(9))
    assert snap_compare(app, terminal_size=SIZES[size], run_before=panes(4, "2"))


@pytest.mark.parametrize("theme", ["cloche-light", "cloche-ansi"])
def test_panes_in_other_themes(snap_compare: Compare, theme: str) -> None:
    app, _, _ = workstation(crowd(9), theme=theme)
    assert snap_compare(app, terminal_size=SIZES["120x40"], run_before=panes(4, "2"))


@pytest.mark.parametrize("count", [3, 5])
def test_panes_take_over_free_places(snap_compare: Compare, count: int) -> None:
    app, _, _ = workstation(crowd(count))

    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await press(pilot, "plus", "plus", "plus", "escape")

    assert snap_compare(app, terminal_size=SIZES["120x40"], run_before=before)


@pytest.mark.parametrize("size", SIZES)
def test_one_pane_alone(snap_compare: Compare, size: str) -> None:
    app, _, _ = workstation(crowd(9))
    assert snap_compare(app, terminal_size=SIZES[size], run_before=panes(4, "3", "ctrl+g", "z"))


@pytest.mark.parametrize("count", [4, 9])
def test_what_panes_say_of_their_terminals(snap_compare: Compare, count: int) -> None:
    app, _, terminals = workstation(crowd(9))
    arrange = panes(count)

    async def before(pilot: Pilot[None]) -> None:
        await arrange(pilot)
        one, two, three, four = (terminals.feeds[f"s{n}"] for n in range(1, 5))
        assert one.listener is not None
        assert two.listener is not None
        assert three.listener is not None
        one.scroll = Scroll(offset=100, total=142, at_end=False)
        one.listener.feed_bell()
        two.mirrored = True
        two.listener.feed_mirrored(True)
        three.progress = (1, 70)
        three.listener.feed_progress(three.progress)
        four.state = "lost"
        screen = pilot.app.screen
        assert isinstance(screen, FleetScreen)
        await until(pilot, lambda: screen.news_of("s1").belled)
        screen.show_news()
        await press(pilot, "2")

    assert snap_compare(app, terminal_size=SIZES["200x60"], run_before=before)


def test_after_the_prefix(snap_compare: Compare) -> None:
    app, _, _ = workstation(crowd(4))
    run = panes(2, "1", "ctrl+g")
    assert snap_compare(app, terminal_size=SIZES["120x40"], run_before=run)
