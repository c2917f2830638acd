"""What the review leaves out of a frame is what nobody can see: the screen is as if drawn anew."""

# What is written for a frame has no public way out of Textual.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pyte
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rich.console import Console
from textual import events
from textual._compositor import CompositorUpdate

from tests.doubles.keeper import FakeFile
from tests.doubles.pilots import settle
from tests.doubles.reviews import open_review
from tests.doubles.scenes import changed_files, sessions, workstation
from tests.sampling import sampled
from widgets.lines import LineView

if TYPE_CHECKING:
    import pytest
    from textual.app import App
    from textual.pilot import Pilot
    from textual.screen import Screen

    from app.ui.review_screen import ReviewScreen

SIZE = (130, 24)
KEYS = (
    *("j", "j", "j", "k", "pagedown", "pageup", "g", "G", "l", "roll", "roll"),
    *("right_square_bracket", "left_square_bracket", "right_curly_bracket"),
    *("space", "space", "x", "A", "u", "v", "v", "S", "escape", "s", "w", "Z", "enter", "tab"),
)


class Written:
    """A terminal that gets what an application writes for each frame."""

    def __init__(self) -> None:
        self.console = Console(color_system="truecolor", force_terminal=True)
        self.screen = pyte.Screen(*SIZE)
        self.stream = pyte.Stream(self.screen)

    def write(self, update: object) -> None:
        """Take one frame."""
        if isinstance(update, CompositorUpdate):
            self.stream.feed(update.render_segments(self.console).replace("\n", "\r\n"))

    def cells(self) -> list[list[pyte.screens.Char]]:
        """Return what stands where."""
        columns, rows = SIZE
        return [[self.screen.buffer[y][x] for x in range(columns)] for y in range(rows)]


def drawn_anew(screen: ReviewScreen) -> list[list[pyte.screens.Char]]:
    """Return the screen with nothing taken from earlier frames."""
    for view in screen.query(LineView):
        view.redraw()
    terminal = Written()
    terminal.write(screen._compositor.render_full_update())
    return terminal.cells()


def long_file() -> FakeFile:
    """A file of several screens with hunks of all sizes."""
    base = [f"value_{n} = compute({n})\n" for n in range(150)]
    agent = [
        line.replace("compute", "derive") if n % 17 in (3, 4, 9) else line
        for n, line in enumerate(base)
    ]
    agent[60:62] = ["one\n", "two " * 60 + "\n", "three\n"]
    return FakeFile("src/long.py", "".join(base).encode(), "".join(agent).encode())


async def press(pilot: Pilot[None], screen: ReviewScreen, key: str) -> None:
    """Press a key, or roll the wheel."""
    if key == "roll":
        screen.pane.roll(3)
    else:
        pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
    await settle(pilot)


@settings(
    max_examples=sampled(4, 2),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(walks=[["v", "j", "j", "escape"], ["j"] * 9, ["space", "x", "j"], ["roll", "A", "G"]])
@given(walks=st.lists(st.lists(st.sampled_from(KEYS), min_size=1, max_size=8), max_size=3))
def test_the_screen_is_as_if_drawn_anew_after_any_keys(
    walks: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        keepers = sessions()
        keepers[0].files = [long_file(), *changed_files()[1:3]]
        app, _, _ = workstation(keepers)
        terminal = Written()
        inner = cast("Any", type(app))._display

        def display(it: App[None], screen: Screen[object], update: object) -> None:
            terminal.write(update)
            inner(it, screen, update)

        monkeypatch.setattr(type(app), "_display", display)
        async with app.run_test(size=SIZE) as pilot:
            screen = await open_review(app, pilot)
            terminal.write(screen._compositor.render_full_update())
            for walk in walks:
                for key in walk:
                    await press(pilot, screen, key)
                assert terminal.cells() == drawn_anew(screen)

    asyncio.run(check())
    monkeypatch.undo()
