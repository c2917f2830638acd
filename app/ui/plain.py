"""The workstation without a colour: for users who want none, and terminals that show none.

Textual writes greys under NO_COLOR, and full colours on a terminal that knows none at all. Here no
colour goes out: what is told apart by it is also told by a sign or by reverse, bold and underline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual.filter import LineFilter, Monochrome, NoColor

from widgets.paint import Paint
from widgets.terminal_draw_ink import Ink, depth_of

if TYPE_CHECKING:
    from textual.app import App
    from textual.color import Color

PLAIN_CLASS = "-plain"
"""Class of an application that writes no colour; the style sheets know it."""

CHOSEN = Style(underline=True)
"""How the line under the cursor of a list that has the keys looks, and the field typed in."""


class Plain(LineFilter):
    """Takes every colour out of what widgets draw."""

    def __init__(self, app: App[object]) -> None:
        super().__init__()
        self._app = app
        self._theme = ""
        self._made: dict[Style, Style] = {}

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments with effects in the place of colours."""
        if self._theme != self._app.theme:
            self._theme, self._made = self._app.theme, {}
            self._paint = Paint.of(self._app)
            self._ink = Ink(self._paint, "none", dark=self._app.current_theme.dark)
        return [Segment(text, self._plain(style), control) for text, style, control in segments]

    def _plain(self, style: Style | None) -> Style | None:
        if style is None:
            return None
        found = self._made.get(style)
        if found is None:
            found = self._made[style] = self._limited(style)
        return found

    def _limited(self, style: Style) -> Style:
        made = self._ink.limited(style)
        chosen = self._paint.color("selection").rich_color
        if style.bgcolor == chosen and not self._paint.color("selection").is_transparent:
            made += CHOSEN
        return made + Style(meta=style.meta) if style.meta else made


def keep_plain(app: App[object], filters: list[LineFilter]) -> None:
    """Replace Textual's greys in an application's filters where no colour may go out."""
    if depth_of(app) != "none":
        return
    filters[:] = [one for one in filters if not isinstance(one, Monochrome | NoColor)]
    filters.append(Plain(app))
    app.add_class(PLAIN_CLASS)
