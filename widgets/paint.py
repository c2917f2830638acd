"""Styles for widgets that draw their own lines, made from the theme's tokens once per theme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.style import Style
from textual.color import Color

from themes.palette import DEFAULT, builtin_palettes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.app import App


LEAST_CONTRAST = 0.25
"""Difference of brightness (0 … 1) from which text in one of the terminal's own colours is readable
on the ground of a chosen line; blue, red and green on blue are below it."""


class Paint:
    """Turns token names into Rich styles and keeps them.

    A token that the running theme lacks is taken from Cloche's own default theme, so a widget also
    draws in an application that knows nothing of our tokens.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._tokens = {**builtin_palettes()[DEFAULT].tokens(), **variables}
        self._styles: dict[tuple[str, str, str], Style] = {}

    @classmethod
    def of(cls, app: App[object]) -> Paint:
        """Return the paint of the theme that `app` shows."""
        return cls(app.theme_variables)

    def color(self, token: str) -> Color:
        """Return the colour that a token stands for."""
        return Color.parse(self._tokens[token])

    def _text(self, token: str, on: str) -> Color:
        """Return a text's colour: the usual one where its own is not seen on a chosen line."""
        text, ground = self.color(token), self.color(on)
        if on != "selection":
            return text
        own = all(one.ansi is not None and one.ansi >= 0 for one in (text, ground))
        hidden = own and abs(text.brightness - ground.brightness) < LEAST_CONTRAST
        return self.color("foreground") if hidden else text

    def __call__(self, token: str = "foreground", on: str = "background", how: str = "") -> Style:
        """Return the style with `token` as text colour on `on`; `how` holds letters b u d s r.

        They mean bold, underline, dim, strike and reverse.
        """
        key = (token, on, how)
        found = self._styles.get(key)
        if found is None:
            found = self._styles[key] = Style(
                color=self._text(token, on).rich_color,
                bgcolor=self.color(on).rich_color,
                bold="b" in how or None,
                underline="u" in how or None,
                dim="d" in how or None,
                strike="s" in how or None,
                reverse="r" in how or None,
            )
        return found
