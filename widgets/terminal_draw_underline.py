"""Underlines that Rich has no words for: curly, dotted, dashed, and their colour.

Rich knows a single and a double line. The others are SGR 4:3, 4:4 and 4:5, the colour is SGR 58;
terminals that do not know the colon may take `4:3` for "underlined, italic" or drop the whole
sequence with its colours. So they are written only to terminals that are known to read them and to
show all colours; every other gets a single line, which is also what the styles say to anyone who
looks at them (pictures, tests, marks painted over them).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.color import ColorSystem
from rich.style import Style
from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Mapping

CURLY, DOTTED, DASHED = 3, 4, 5
"""Kinds of underline as SGR 4:n numbers them (1 single, 2 double)."""

KNOWN_TERMS = re.compile(r"xterm-kitty|xterm-ghostty|foot|wezterm|alacritty|contour|mintty|tmux")
"""Starts of TERM of terminals that read SGR 4:3 and 58 (tmux passes them on or leaves them out)."""

KNOWN_PROGRAMS = frozenset({"iTerm.app", "WezTerm", "ghostty", "kitty", "mintty", "vscode"})
"""TERM_PROGRAM of terminals whose TERM says only xterm."""

NO_LINE = Style(underline=False, underline2=False)

FIRST_VTE = 5200
"""VTE_VERSION from which GNOME's terminal reads them."""


def knows_underlines(environment: Mapping[str, str]) -> bool:
    """Tell whether the outer terminal shows all kinds of underline, and all colours."""
    if environment.get("COLORTERM") not in ("truecolor", "24bit"):
        return False
    if "NO_COLOR" in environment or environment.get("TEXTUAL_COLOR_SYSTEM", "auto") != "auto":
        return False
    version = environment.get("VTE_VERSION", "")
    return (
        KNOWN_TERMS.match(environment.get("TERM", "")) is not None
        or environment.get("TERM_PROGRAM") in KNOWN_PROGRAMS
        or (version.isascii() and version.isdigit() and int(version[:9]) >= FIRST_VTE)
    )


def underlined(style: Style, kind: int, color: tuple[int, int, int] | None = None) -> Style:
    """Make an underlined style write its kind (1 … 5) and colour; returns the same style.

    Call it only where `knows_underlines`, and on a style of your own, which underlines already:
    it presets what the style is written as, a private value of Rich that no copy keeps.
    """
    plain = written(style + NO_LINE)
    codes = [plain] if plain else []
    codes.append("4" if kind == 1 else f"4:{kind}")
    if color is not None:
        codes.append("58:2::{}:{}:{}".format(*color))
    style._ansi = ";".join(codes)  # pyright: ignore[reportPrivateUsage]
    return style


def written(style: Style) -> str:
    """Return the SGR codes that Textual writes for a style in all colours."""
    return Strip.render_ansi(style, ColorSystem.TRUECOLOR)
