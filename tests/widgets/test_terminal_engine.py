"""Copy mode, search and the mouse of a view, down to a real engine in its worker."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from textual.events import MouseDown, MouseMove, MouseScrollUp, MouseUp

from tests.doubles.pane_server import PaneServer
from tests.doubles.pane_watch import hub_of
from tests.doubles.terminal_app import TerminalApp, finished, focused, mouse, shown
from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from textual.pilot import Pilot

    from app.ui.pane import Pane

WAIT_S = 15.0
BACK = "left_square_bracket"
LINES = 60


class Scene:
    """A view of 40x10 on an engine with sixty numbered lines; the last rows are 52 … 60 and $."""

    def __init__(
        self, pilot: Pilot[None], app: TerminalApp, pane: Pane, server: PaneServer
    ) -> None:
        self.pilot, self.app, self.pane, self.server = pilot, app, pane, server

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                await self.pilot.pause(0.01)

    async def shows(self, y: int, text: str) -> None:
        await self.until(lambda: shown(self.app, y).text.startswith(text))

    async def cursor_at(self, x: int, y: int) -> None:
        def there() -> bool:
            cursor = self.pane.cursor
            return cursor is not None and (cursor.x, cursor.y) == (x, y)

        await self.until(there)

    async def copied(self) -> str:
        await finished(self.app)
        await self.until(lambda: bool(self.app.of(TerminalView.Copied)))
        last = self.app.of(TerminalView.Copied)[-1]
        assert isinstance(last, TerminalView.Copied)
        return last.text


def numbered() -> bytes:
    lines = [f"line {n:02}: (word{n} in) it" for n in range(1, LINES + 1)]
    return "\r\n".join(lines).encode() + b"\r\n$ "


@asynccontextmanager
async def scene(folder: Path) -> AsyncGenerator[Scene]:
    async with PaneServer(folder / "s", size=(40, 10)) as server, hub_of() as hub:
        pane = hub.open("one", folder / "s", columns=40, rows=10)
        app = TerminalApp(pane)
        async with app.run_test() as pilot:
            it = Scene(pilot, app, pane, server)
            await it.until(lambda: pane.state == "live")
            await server.put(numbered())
            await focused(pilot, app)
            await it.shows(9, "$")
            yield it


@pytest.mark.parametrize(
    ("keys", "row", "text", "cursor"),
    [
        (["g"], 0, "line 01", (0, 0)),
        (["g", "G"], 9, "$", (0, 9)),
        (["M"], 0, "line 52", (0, 4)),
        (["H"], 0, "line 52", (0, 0)),
        (["H", "L"], 0, "line 52", (0, 9)),
        (["5", "G"], 0, "line 05", (0, 0)),
        (["g", "3", "j"], 0, "line 01", (0, 3)),
        (["g", "dollar_sign"], 0, "line 01", (21, 0)),
        (["g", "0", "w", "w"], 0, "line 01", (7, 0)),
        (["pageup"], 0, "line 44", (2, 9)),
        (["ctrl+u"], 0, "line 47", (2, 9)),
    ],
)
async def test_motions(
    tmp_path: Path, keys: list[str], row: int, text: str, cursor: tuple[int, int]
) -> None:
    async with scene(tmp_path) as it:
        await it.pilot.press("ctrl+g", BACK, *keys)
        await it.until(lambda: it.pane.view.copying)
        await it.shows(row, text)
        await it.cursor_at(*cursor)
        assert it.app.view.copying


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (["g", "0", "v", "e"], "line"),
        (["g", "0", "w", "v", "dollar_sign"], "01: (word1 in) it"),
        (["g", "V", "j"], "line 01: (word1 in) it\nline 02: (word2 in) it"),
        (["g", "0", "w", "ctrl+v", "2", "j", "l"], "01\n02\n03"),
        (["g", "0", "v", "l", "o", "l"], "i"),
        (["g", "0", "w", "w", "v", "l", "percent_sign"], ": (word1 in)"),
    ],
)
async def test_copying_by_keys(tmp_path: Path, keys: list[str], text: str) -> None:
    async with scene(tmp_path) as it:
        await it.pilot.press("ctrl+g", BACK, *keys)
        await it.until(lambda: it.pane.view.selected)
        await it.pilot.press("y")
        assert await it.copied() == text
        await it.until(lambda: not it.pane.view.copying)
        await it.shows(9, "$")


async def test_the_page_stands_still_while_the_guest_goes_on_and_typing_ends_it(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as it:
        await it.pilot.press("ctrl+g", "pageup")
        await it.shows(0, "line 44")
        await it.server.put(b"\r\nmore\r\nand more\r\n$ ")
        await it.pilot.press("k", "j")
        await it.until(lambda: it.pane.view.copying)
        await it.shows(0, "line 44")
        assert it.server.typed == b""
        await it.pilot.press("q", "l", "s")
        await it.until(lambda: bytes(it.server.typed) == b"ls")
        await it.shows(8, "and more")


async def test_searching(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await it.pilot.press("ctrl+g", "f", *"word1")
        await it.until(lambda: it.pane.view.matches == 11)  # word1 and word10 … word19
        await it.until(lambda: "of 11" in shown(it.app, 9).text + shown(it.app, 0).text)
        assert it.pane.view.match == 11, "the newest, for the search goes up"
        await it.pilot.press("enter")
        await it.until(lambda: "11 of 11" in shown(it.app, 9).text)
        await it.pilot.press("n")
        await it.until(lambda: it.pane.view.match == 10)
        await it.pilot.press("N", "N")
        await it.until(lambda: it.pane.view.match == 1)
        kinds = {mark.kind for y in range(10) for mark in it.pane.marks(y)}
        assert "current" in kinds
        await it.pilot.press("slash", *"nowhere")
        await it.until(lambda: "nothing" in shown(it.app, 9).text)
        await it.pilot.press("escape", "q")
        await it.shows(9, "$")


async def test_dragging(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await mouse(it.pilot, MouseDown, 0, 1, 1)
        await mouse(it.pilot, MouseMove, 3, 1, 1)
        await mouse(it.pilot, MouseMove, 6, 2, 1)
        await mouse(it.pilot, MouseUp, 6, 2, 1)
        assert await it.copied() == "line 53: (word53 in) it\nline 54"
        await it.until(lambda: it.pane.view.selected)
        await it.until(lambda: bool(it.pane.marks(1)))
        await it.pilot.press("x")
        await it.until(lambda: not it.pane.view.selected)
        await it.until(lambda: bytes(it.server.typed) == b"x")


@pytest.mark.parametrize(("presses", "text"), [(2, "word53"), (3, "line 53: (word53 in) it")])
async def test_double_and_triple_clicks(tmp_path: Path, presses: int, text: str) -> None:
    async with scene(tmp_path) as it:
        for _ in range(presses):
            await mouse(it.pilot, MouseDown, 12, 1, 1)
            await mouse(it.pilot, MouseUp, 12, 1, 1)
        await it.until(lambda: it.pane.view.selected)
        await it.until(lambda: text in texts_of(it.app))


def texts_of(app: TerminalApp) -> list[str]:
    return [it.text for it in app.of(TerminalView.Copied) if isinstance(it, TerminalView.Copied)]


async def test_a_drag_over_the_top_selects_what_was_out_of_sight(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await mouse(it.pilot, MouseDown, 6, 1, 1)
        await mouse(it.pilot, MouseMove, 0, -1, 1)
        await it.until(lambda: it.pane.scroll.offset <= 40)
        await mouse(it.pilot, MouseUp, 0, -1, 1)
        text = await it.copied()
        assert text.startswith("line ")
        assert text.endswith("\nline 53")
        assert text.count("\n") >= 11


async def test_the_wheel_pages_and_a_key_returns(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await mouse(it.pilot, MouseScrollUp, 1, 1)
        await it.until(lambda: not it.pane.scroll.at_end)
        await it.pilot.press("ctrl+g", BACK)
        await it.until(lambda: it.pane.view.copying)
        offset = it.pane.scroll.offset
        await mouse(it.pilot, MouseScrollUp, 1, 1)
        await it.until(lambda: it.pane.scroll.offset == offset - 3)
        await it.pilot.press("q", "x")
        await it.until(lambda: it.pane.scroll.at_end)
        await it.shows(9, "$")


async def test_soft_wraps_are_joined_when_copied(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await it.server.put(b"\r\n" + b"0123456789" * 7 + b"\r\n$ ")
        await it.shows(9, "$")
        await it.until(lambda: shown(it.app, 7).text == "0123456789" * 4)
        for _ in range(3):
            await mouse(it.pilot, MouseDown, 12, 7, 1)
            await mouse(it.pilot, MouseUp, 12, 7, 1)
        await it.until(lambda: "0123456789" * 7 in texts_of(it.app))
