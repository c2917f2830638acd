"""How copy mode looks: marks, mark of the mode, search line, in each of our themes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest
from rich.segment import Segment
from textual.strip import Strip

from app.ui.theming import install_themes
from tests.doubles.terminal_app import GrantingFeed, TerminalApp, focused
from themes.palette import builtin_palettes
from widgets.paint import Paint
from widgets.terminal_feed import Cursor, Mark, Scroll

if TYPE_CHECKING:
    from textual.pilot import Pilot


class SnapCompare(Protocol):
    """The fixture of pytest-textual-snapshot, which has no types of its own."""

    def __call__(self, app: object, *, terminal_size: tuple[int, int], run_before: object) -> bool:
        """Compare a picture."""
        ...


TEXT = (
    "$ grep -rn token src",
    "src/scan.py:12: token = self.next()",
    "src/scan.py:13: if token is None:",
    "src/scan.py:14:     raise NoToken(token)",
    "src/字典.py:7: # 漢字 token 漢字",
    "$",
)


def scene(theme: str) -> tuple[TerminalApp, GrantingFeed]:
    feed = GrantingFeed()
    app = TerminalApp(feed)
    install_themes(app, theme)
    plain = Paint(builtin_palettes()[theme].tokens())()
    for y in range(feed.rows):
        text = TEXT[y] if y < len(TEXT) else ""
        strip = Strip([Segment(text, plain)])
        rest = Segment(" " * (feed.columns - strip.cell_length), plain)
        feed.strips[y] = Strip([*strip, rest], feed.columns)
        places = [n for n in range(len(text)) if text.startswith("token", n)]
        # the fifth row has three wide characters before its match
        feed.marked[y] = tuple(
            Mark(n + 4 * (y == 4), n + 4 * (y == 4) + 5, "match") for n in places
        )
    feed.marked[1] = (Mark(0, 40, "selection"), *feed.marked[1])
    feed.marked[2] = (Mark(0, 19, "selection"), Mark(19, 24, "current"))
    feed.cursor, feed.scroll = Cursor(19, 2), Scroll(2880, 3010, at_end=False)
    return app, feed


@pytest.mark.parametrize("theme", list(builtin_palettes()))
@pytest.mark.parametrize("keys", [("slash", "t", "enter"), ("slash", *"token")])
def test_copy_mode(snap_compare: SnapCompare, theme: str, keys: tuple[str, ...]) -> None:
    app, feed = scene(theme)

    async def prepare(pilot: Pilot[None]) -> None:
        await focused(pilot, app)
        await pilot.press("ctrl+g", "left_square_bracket", *keys)
        feed.put(told=range(feed.rows))
        await pilot.pause()

    assert snap_compare(app, terminal_size=(52, 12), run_before=prepare)
