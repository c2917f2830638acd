"""The base of widgets that draw lines, not child widgets: one row is one cached strip.

It overrides `render_lines`, which skips Textual's per-line CSS work: a scroll step then costs a
few milliseconds whatever the list's length. The price: borders, padding and opacity have no
effect on these widgets, and colour filters (NO_COLOR) are applied here, once for each strip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, cast

from rich.segment import Segment
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from themes.glyphs import UNICODE, Glyphs
from widgets.paint import Paint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.style import Style
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
        self._filtered: dict[Style | None, Style | None] = {}
        self._frame: tuple[object, list[Strip]] | None = None
        """What was drawn last, as long as nobody asked to draw again."""

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

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Draw again, and nothing else.

        Textual would move its scrollbar too: that has no size here, and to draw what cannot be seen
        it works out anew where everything on the screen stands.
        """
        if round(old_value) != round(new_value):
            self.refresh(self.size.region)

    def redraw(self) -> None:
        """Forget every drawn row and draw again."""
        self._strips.clear()
        self._ground = None
        self.refresh()

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """Draw again; whatever changes how the lines look has to ask for it."""
        self._frame = None
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

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
        return self.strip_of(row, self.size.width)

    def strip_of(self, row: int, width: int) -> Strip:
        """Return the drawn row; Textual's `size` is too slow to be asked for every one of them."""
        if not 0 <= row < self.row_count:
            return self.filtered(Strip.blank(width, self.paint(on=self.blank_style_token())))
        return self.kept((self.row_key(row), width), lambda: self.draw_row(row, width))

    def kept(self, key: object, draw: Callable[[], Strip]) -> Strip:
        """Return what was drawn for `key`, else draw it."""
        found = self._strips.get(key)
        if found is None:
            found = self._strips[key] = self.filtered(draw())
            if len(self._strips) > CACHED_STRIPS:  # the one that was drawn first goes
                del self._strips[next(iter(self._strips))]
        return found

    def filtered(self, strip: Strip) -> Strip:
        """Apply the application's colour filters; most change no style of ours."""
        if self._ground is None:  # both walk the tree of widgets: not for every strip
            self._ground = (self.get_line_filters(), self.background_colors[1])
            self._filtered = {}
        known, changed = self._filtered, False
        for _, style, _ in strip:
            if style not in known:
                known[style] = self._filter(style)
            changed = changed or known[style] is not style
        if not changed:
            return strip
        segments = [Segment(text, known[style], control) for text, style, control in strip]
        return Strip(segments, strip.cell_length)

    def _filter(self, style: Style | None) -> Style | None:
        """Return a style as the filters leave it; they look at nothing else of a text."""
        assert self._ground is not None
        strip = Strip([Segment("x", style)])
        filters, background = self._ground
        for line_filter in filters:
            strip = strip.apply_filter(line_filter, background)
        return next(iter(strip)).style

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the visible rows.

        Textual asks every widget of a region for its lines when a line of one of them changed, so
        the last ones are kept.
        """
        width = self.size.width
        asked = (crop, self.scroll_offset, width)
        if self._frame is None or self._frame[0] != asked:
            strips = self.draw_lines(crop, width)
            if crop.column_span != (0, width):
                strips = [strip.crop(*crop.column_span) for strip in strips]
            self._frame = (asked, strips)
        return self._frame[1]

    def draw_lines(self, crop: Region, width: int) -> list[Strip]:
        """Return the lines of a region, in the widget's whole width."""
        top = self.scroll_offset.y
        return [self.strip_of(top + y, width) for y in crop.line_range]
