"""Which colours the outer terminal can show, and the styles of what is painted over its rows.

A terminal view draws resolved strips past Textual's own colour filters, so the limits are kept
here, once for each style:

* `full`, `many` (256): styles go out as they are; Textual writes the nearest of 256.
* `sixteen`: the same, but text that would come out in the colour of its background is mended.
* `none` (NO_COLOR, or a terminal that knows none): no colour is written at all. Where text is
  darker than its background on a dark page (or the other way round), it is shown in reverse, so
  that bars and choices of full-screen programs are still to be seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rich.color import Color, ColorSystem, blend_rgb
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from widgets.paint import Paint

if TYPE_CHECKING:
    from rich.color_triplet import ColorTriplet
    from textual.app import App

MarkLook = Literal["selection", "match", "current", "selected match"]
"""How a marked cell looks."""

TURNS: dict[str, frozenset[MarkLook]] = {
    "none": frozenset({"selection", "selected match", "current"}),
    "sixteen": frozenset({"selection"}),
    "full": frozenset(),
}
"""Marks that swap text and background, by how many colours there are for them."""

Depth = Literal["none", "sixteen", "many", "full"]
"""How many colours the outer terminal shows."""

DEPTHS: dict[str | None, Depth] = {
    None: "none",
    "standard": "sixteen",
    "windows": "sixteen",
    "256": "many",
    "truecolor": "full",
}

MAX_STYLES = 65_536
"""Styles kept; a guest that makes up more only loses the shortcut."""

MIDDLE = 128.0
"""Brightness (0 … 255) from which a colour is taken for a light one."""

PALER = 0.45
"""Share of the text's colour in the paler block of a bar cursor."""

BLACK, WHITE = Color.from_ansi(0), Color.from_ansi(15)


def depth_of(app: App[object]) -> Depth:
    """Return how many colours the terminal that `app` runs on shows."""
    return "none" if app.no_color else DEPTHS.get(app.console.color_system, "full")


def brightness(rgb: ColorTriplet) -> float:
    """Return how bright a colour looks, 0 … 255 (weights of ITU-R BT.601)."""
    return 0.299 * rgb.red + 0.587 * rgb.green + 0.114 * rgb.blue


class Ink:
    """The styles of one theme on one kind of terminal."""

    def __init__(self, paint: Paint, depth: Depth, *, dark: bool = True) -> None:
        self.depth = depth
        self._paint, self._dark = paint, dark
        self._limited: dict[Style, Style] = {}
        coarse = depth in ("none", "sixteen")
        self._coarse = coarse or paint.color("background").ansi is not None
        self._marks = self._make_marks()
        self._turns = TURNS[depth if depth == "none" else "sixteen" if self._coarse else "full"]

    @classmethod
    def of(cls, app: App[object]) -> Ink:
        """Return the ink for the theme and the terminal of `app`."""
        return cls(Paint.of(app), depth_of(app), dark=app.current_theme.dark)

    # -- limits ------------------------------------------------------------------------------

    def limit(self, strip: Strip) -> Strip:
        """Return a strip in colours that the terminal can show; the same one where it can."""
        if self.depth in ("full", "many"):
            return strip
        segments = [
            Segment(text, style and self.limited(style), control) for text, style, control in strip
        ]
        return Strip(segments, strip.cell_length)

    def limited(self, style: Style) -> Style:
        """Return a style in colours that the terminal can show."""
        found = self._limited.get(style)
        if found is None:
            if len(self._limited) >= MAX_STYLES:
                self._limited.clear()
            made = self._without(style) if self.depth == "none" else self._in_sixteen(style)
            found = self._limited[style] = made
        return found

    def _without(self, style: Style) -> Style:
        reverse = self._is_turned(style) != bool(style.reverse)
        return style.without_color + Style(reverse=reverse if reverse or style.reverse else None)

    def _is_turned(self, style: Style) -> bool:
        """Tell whether text and background are the other way round than on the page."""
        if style.bgcolor is None or style.bgcolor.is_default:
            return False
        behind = brightness(style.bgcolor.get_truecolor())
        if style.color is None or style.color.is_default:
            return (behind < MIDDLE) != self._dark
        text = brightness(style.color.get_truecolor())
        return text != behind and (text > behind) != self._dark

    def _in_sixteen(self, style: Style) -> Style:
        text, behind = style.color, style.bgcolor
        if text is None or behind is None or text.is_default or behind.is_default:
            return style
        nearest = behind.downgrade(ColorSystem.STANDARD)
        if text == behind or text.downgrade(ColorSystem.STANDARD).number != nearest.number:
            return style
        light = brightness(nearest.get_truecolor()) >= MIDDLE
        return style + Style(color=BLACK if light else WHITE)

    # -- marks and cursor ----------------------------------------------------------------------

    def _make_marks(self) -> dict[MarkLook, Style]:
        """Return what marks add; with few colours some cells are turned besides."""
        if self.depth == "none":
            line = Style(underline=True)
            return {"match": line, "selected match": line, "current": line + Style(bold=True)}
        if self._coarse:
            match = Style(color=BLACK, bgcolor=Color.from_ansi(3), dim=False)
            current = Style(color=BLACK, bgcolor=Color.from_ansi(6), bold=True, dim=False)
            return {
                "match": match + Style(reverse=False),
                "selected match": match + Style(reverse=True),
                "current": current + Style(reverse=False),
            }
        paint = self._paint
        plain = Style(reverse=False, dim=False)
        return {
            "selection": paint("foreground", "selection") + plain,
            "match": paint("diff-find-foreground", "diff-find") + plain,
            "selected match": paint("diff-find-foreground", "selection", "bu") + plain,
            "current": paint("background", "accent", "bu") + plain,
        }

    def marked(self, style: Style, look: MarkLook) -> Style:
        """Return a style with a mark on it; what it cannot show as colour it shows in reverse."""
        if look in self._turns:
            style = self.turned(style)
        mark = self._marks.get(look)
        return style if mark is None else style + mark

    def turned(self, style: Style) -> Style:
        """Return a style with text and background swapped."""
        return style + Style(reverse=not style.reverse)

    def lit(self, style: Style) -> Style:
        """Return the style of a cursor that is a character by itself: no effect hides it."""
        return style + Style(dim=False, conceal=False, blink=False, underline=False)

    def paler(self, style: Style) -> Style:
        """Return a style on a ground between its two colours, or bold and underlined."""
        text, behind = style.color, style.bgcolor
        if style.reverse:
            text, behind = behind, text
        if self._coarse or text is None or behind is None or text.is_default or behind.is_default:
            return style + Style(bold=True, underline=not style.underline)
        ground = blend_rgb(behind.get_truecolor(), text.get_truecolor(), PALER)
        mixed = Color.from_triplet(ground)
        light = brightness(ground) >= MIDDLE
        front = self._paint("foreground" if light != self._dark else "background").color
        return style + Style(color=front, bgcolor=mixed, reverse=False, dim=False)

    # -- lines of our own ------------------------------------------------------------------------

    def mode(self) -> Style:
        """Return the style of the mode's mark: stands out on every terminal."""
        return self._own("accent", "background", "br")

    def prompt(self, token: str = "foreground", how: str = "") -> Style:
        """Return a style of the line in which a search is typed."""
        if self._coarse:
            return Style(reverse=True, bold="b" in how or None, underline="u" in how or None)
        return self._paint(token, "raised", how)

    def _own(self, token: str, on: str, how: str) -> Style:
        style = self._paint(token, on, how)
        return style.without_color if self.depth == "none" else style
