"""The base of widgets that draw lines, not child widgets: one row is one cached strip.

It overrides `render_lines`, which skips Textual's per-line CSS work: a scroll step then costs a
few milliseconds whatever the list's length. The price: borders, padding and opacity have no
effect on these widgets, and colour filters (NO_COLOR) are applied here, once for each strip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from themes.glyphs import UNICODE, Glyphs
from widgets.paint import Paint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import App
    from textual.color import Color
    from textual.filter import LineFilter
    from textual.geometry import Region
    from textual.theme import Theme

CACHED_STRIPS = 2000
"""How many drawn rows are kept; about thirty screens full."""


class LineView(ScrollView, can_focus=False):
    """Rows drawn by `draw_row`, with no scrollbar: what needs one draws its own.

    It takes no focus, so a click on a line leaves the keys where they are; lists say otherwise.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    LineView {
        scrollbar-size: 0 0;
        background: $background;
    }
    """

    def __init__(self, *, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs
        self.row_count = 0
        self._paint: Paint | None = None
        self._strips: dict[object, Strip] = {}
        self._ground: tuple[Sequence[LineFilter], Color] | None = None

    @property
    def host(self) -> App[object]:
        """The application; Textual leaves the type of its result unknown."""
        return cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType]

    @property
    def paint(self) -> Paint:
        """The styles of the running theme."""
        if self._paint is None:
            self._paint = Paint.of(self.host)
        return self._paint

    def on_mount(self) -> None:
        """Follow theme changes."""
        self.host.theme_changed_signal.subscribe(self, self._theme_changed)

    def _theme_changed(self, _theme: Theme) -> None:
        self._paint = None
        self.redraw()

    def redraw(self) -> None:
        """Forget every drawn row and draw again."""
        self._strips.clear()
        self._ground = None
        self.refresh()

    def set_row_count(self, count: int) -> None:
        """Say how many rows there are; keeps the scroll position inside them."""
        self.row_count = count
        self.virtual_size = Size(max(1, self.size.width), count)
        if self.scroll_offset.y > self.max_scroll_y:
            self.scroll_to(y=self.max_scroll_y, animate=False, force=True)

    def on_resize(self) -> None:
        """Draw for the new width."""
        self._strips.clear()
        self.virtual_size = Size(max(1, self.size.width), self.row_count)

    def draw_row(self, row: int, width: int) -> Strip:
        """Return the row as a strip of exactly `width` cells."""
        raise NotImplementedError

    def row_key(self, row: int) -> object:
        """Return what the drawn row depends on besides width and theme."""
        return row

    def blank_style_token(self) -> str:
        """Return the token of the background where there are no rows."""
        return "background"

    def row_strip(self, row: int) -> Strip:
        """Return the drawn row, from the cache when nothing of it changed."""
        width = self.size.width
        if not 0 <= row < self.row_count:
            return self.filtered(Strip.blank(width, self.paint(on=self.blank_style_token())))
        key = (self.row_key(row), width)
        found = self._strips.get(key)
        if found is None:
            found = self._strips[key] = self.filtered(self.draw_row(row, width))
            if len(self._strips) > CACHED_STRIPS:  # the one that was drawn first goes
                del self._strips[next(iter(self._strips))]
        return found

    def filtered(self, strip: Strip) -> Strip:
        """Apply the application's colour filters."""
        if self._ground is None:  # both walk the tree of widgets: not for every strip
            self._ground = (self.get_line_filters(), self.background_colors[1])
        filters, background = self._ground
        for line_filter in filters:
            strip = strip.apply_filter(line_filter, background)
        return strip

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the visible rows."""
        top = self.scroll_offset.y
        strips = [self.row_strip(top + y) for y in crop.line_range]
        if crop.column_span != (0, self.size.width):
            start, end = crop.column_span
            strips = [strip.crop(start, end) for strip in strips]
        return strips
