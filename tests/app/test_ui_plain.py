"""The workstation writes no colour that its terminal cannot show or the user does not want."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from app.errors import AppError
from app.ui.opening import run_workstation
from app.ui.plain import CHOSEN, Plain
from tests.doubles import on_terminal
from tests.doubles.scenes import workstation
from themes.palette import builtin_palettes
from widgets.paint import Paint

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import App

SGR = re.compile(rb"\x1b\[([0-9;:]*)m")
FULL = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


def colours(data: bytes) -> set[str]:
    """Return which kinds of colours are written."""
    found: set[str] = set()
    for match in SGR.finditer(data):
        rest = iter(match[1].decode().split(";"))
        for code in rest:
            if code in ("38", "48"):
                depth = next(rest)
                found.add("256" if depth == "5" else "full")
                for _ in range(1 if depth == "5" else 3):
                    next(rest)
            elif code.isdigit() and int(code) // 10 in (3, 4, 9, 10) and int(code) % 10 < 8:
                found.add("16")
    return found


@pytest.mark.parametrize(
    ("environment", "allowed"),
    [
        (FULL, {"full", "16"}),
        ({"TERM": "xterm-256color"}, {"256", "16"}),
        ({"TERM": "xterm"}, {"16"}),
        ({"TERM": "linux"}, {"16"}),
        ({"TERM": "xterm", "CLOCHE_THEME": "cloche-dark"}, {"16"}),
        ({**FULL, "NO_COLOR": "1"}, set[str]()),
        ({**FULL, "NO_COLOR": "1", "CLOCHE_THEME": "cloche-light"}, set[str]()),
    ],
)
def test_no_colour_goes_out_that_the_terminal_cannot_show(
    environment: dict[str, str], allowed: set[str]
) -> None:
    data = on_terminal.written("plain_program.py", (120, 40), environment)
    for text in ("SESSIONS", "keys go to", "sentence.", "Everywhere", "Start an agent"):
        assert text.encode() in data, text
    found = colours(data)
    assert found <= allowed
    assert bool(found) == bool(allowed)


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_terminal_without_a_screen_is_refused(
    term: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    with pytest.raises(AppError, match="needs a screen") as caught:
        run_workstation(tmp_path)
    assert "cloche attach" in caught.value.hint


@pytest.mark.parametrize("theme", ["cloche-dark", "cloche-light", "cloche-ansi"])
async def test_without_colours_what_is_chosen_and_a_cursor_are_still_told_apart(
    theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app, _, _ = workstation(theme=theme)
    async with app.run_test():
        (plain,) = (one for one in app.get_line_filters() if isinstance(one, Plain))
        paint = Paint.of(cast("App[object]", app))

        def seen(style: Style) -> Style:
            (drawn,) = plain.apply([Segment("x", style)], Color(0, 0, 0))
            assert drawn.style is not None
            return drawn.style

        chosen, usual = seen(paint("foreground", "selection")), seen(paint("foreground"))
        assert (chosen.color, chosen.bgcolor) == (None, None)
        assert chosen.underline == CHOSEN.underline
        assert not usual.underline
        assert seen(Style(meta={"offset": (1, 2)})).meta == {"offset": (1, 2)}
        if theme != "cloche-ansi":
            assert seen(paint("background", "accent")).reverse
            assert not usual.reverse


def test_no_sign_is_drawn_in_the_colour_of_its_ground() -> None:
    paint = Paint(builtin_palettes()["cloche-ansi"].tokens())
    for token in ("state-working", "accent", "error", "state-failed", "success"):
        assert paint(token, "selection").color == paint("foreground", "selection").color, token
        assert paint(token, "surface").color == paint.color(token).rich_color
    assert paint("warning", "selection").color == paint.color("warning").rich_color
