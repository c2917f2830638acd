"""What a terminal view writes to the outer terminal: no more than that can show."""

from __future__ import annotations

import re

import pytest
from rich.color import ColorSystem
from rich.style import Style
from textual.strip import Strip

from tests.doubles import on_terminal
from widgets.terminal_draw_underline import (
    CURLY,
    DASHED,
    DOTTED,
    knows_underlines,
    underlined,
    written,
)

SGR = re.compile(rb"\x1b\[([0-9;:]*)m")


def codes_in(data: bytes) -> set[str]:
    """The kinds of SGR codes in some output: effects by number, colours by their class."""
    found: set[str] = set()
    for (codes,) in (match.groups() for match in SGR.finditer(data)):
        found |= kinds_of(codes.decode().split(";"))
    return found


def kinds_of(codes: list[str]) -> set[str]:
    found: set[str] = set()
    rest = iter(codes)
    for code in rest:
        if code in ("38", "48"):
            depth = next(rest)
            found.add("256" if depth == "5" else "full")
            for _ in range(1 if depth == "5" else 3):
                next(rest)
        elif code.isdigit() and (30 <= int(code) <= 49 or 90 <= int(code) <= 107):
            found.add("default" if code in ("39", "49") else "16")
        else:
            found.add(code or "0")
    return found


EFFECTS = {"1", "2", "3", "4", "5", "7", "8", "9", "21", "53"}
"""Bold to overline, as Textual writes them; 21 is the double underline."""


@pytest.mark.parametrize(
    ("environment", "colours"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, {"full"}),
        ({"TERM": "xterm-kitty", "COLORTERM": "truecolor"}, {"full"}),
        ({"TERM": "xterm-256color"}, {"256"}),
        ({"TERM": "xterm-16color"}, {"16"}),
        ({"TERM": "xterm"}, {"16"}),
        ({"TERM": "linux"}, {"16"}),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, set[str]()),
        ({"TERM": "xterm-16color", "NO_COLOR": "1"}, set[str]()),
        ({"TERM": "dumb"}, set[str]()),
    ],
)
def test_no_colour_is_written_that_the_terminal_cannot_show(
    environment: dict[str, str], colours: set[str]
) -> None:
    data = on_terminal.written("terminal_program.py", (60, 12), environment)
    for text in (b"orange", b"palette", b"COPY"):
        assert text in data
    found = codes_in(data)
    classes = found & {"16", "256", "full"}
    if "full" in colours or "256" in colours:
        assert colours <= classes <= colours | {"16"}, "ANSI colours are known everywhere"
    else:
        assert classes == colours
    assert found >= EFFECTS
    assert (b"4:3;58:2::255:0:4" in data) == knows_underlines(environment)


@pytest.mark.parametrize(
    ("environment", "known"),
    [
        ({"TERM": "xterm-kitty", "COLORTERM": "truecolor"}, True),
        ({"TERM": "foot", "COLORTERM": "truecolor"}, True),
        ({"TERM": "tmux-256color", "COLORTERM": "truecolor"}, True),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "VTE_VERSION": "7600"}, True),
        ({"TERM": "xterm-256color", "COLORTERM": "24bit", "TERM_PROGRAM": "iTerm.app"}, True),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "VTE_VERSION": "4600"}, False),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "VTE_VERSION": "new"}, False),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, False),
        ({"TERM": "xterm-kitty"}, False),
        ({"TERM": "xterm-kitty", "COLORTERM": "truecolor", "NO_COLOR": ""}, False),
        ({"TERM": "xterm-kitty", "COLORTERM": "truecolor", "TEXTUAL_COLOR_SYSTEM": "256"}, False),
        ({"TERM": "screen-256color", "COLORTERM": "truecolor"}, False),
        ({}, False),
    ],
)
def test_which_terminals_know_all_underlines(environment: dict[str, str], known: bool) -> None:
    assert knows_underlines(environment) is known


@pytest.mark.parametrize(
    ("kind", "color", "codes"),
    [
        (1, (255, 0, 4), "1;38;2;4;21;4;4;58:2::255:0:4"),
        (2, (4, 21, 0), "1;38;2;4;21;4;4:2;58:2::4:21:0"),
        (CURLY, None, "1;38;2;4;21;4;4:3"),
        (DOTTED, None, "1;38;2;4;21;4;4:4"),
        (DASHED, (0, 0, 0), "1;38;2;4;21;4;4:5;58:2::0:0:0"),
    ],
)
def test_an_underline_is_written_with_its_kind_and_colour(
    kind: int, color: tuple[int, int, int] | None, codes: str
) -> None:
    # a colour made of the numbers that mean underlines
    style = Style(color="#041504", bold=True, underline=kind != 2, underline2=kind == 2)
    shown = Strip.render_style(underlined(style, kind, color), "x", ColorSystem.TRUECOLOR)
    assert shown == f"\x1b[{codes}mx\x1b[0m"
    marked = style + Style(bgcolor="#000000")
    assert ":" not in written(marked), "what is painted over it keeps a plain line"
    assert (bool(marked.underline), bool(marked.underline2)) == (kind != 2, kind == 2)
