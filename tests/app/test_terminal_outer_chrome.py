"""What guests name themselves and report is text in our chrome, read from the bytes sent out."""

from __future__ import annotations

import base64
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests.doubles.outer_bytes import STARTING, strange
from tests.doubles.outer_lab import Lab, lab_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

COLUMNS, ROWS = 120, 36
ESCAPES = b"\x1b[31m\xc2\x9b31m\xe2\x80\xae\xe2\x80\x8b[bold]b[/][@click=app.quit]c[/]"
"""Escapes end a string of a guest; C1, bidi and markup are characters of it."""


@asynccontextmanager
async def workstation(folder: Path, bell: str = "mark") -> AsyncGenerator[Lab]:
    async with lab_of(folder, "workstation_app.py", bell, columns=COLUMNS, rows=ROWS) as lab:
        await lab.print(b"ready ")
        yield lab


async def enter(lab: Lab) -> None:
    """Give the keys to the agent."""
    lab.type(b"\r")
    await lab.shows("keys go to")


async def test_hostile_names_are_text_on_every_screen(tmp_path: Path) -> None:
    async with workstation(tmp_path) as lab:
        shown = await lab.until(lambda page: any("s2\u241b]0;EVIL" in line for line in page))
        assert any("[bold]n[/]" in line for line in shown)
        for keys, wanted in (
            (b"?", "paused"),
            (b"s", "Stop s1\u241b"),
            (b"/EVIL", "2 of 2"),
        ):
            lab.type(keys)
            await lab.shows(wanted)
            lab.type(b"\x1b")
            await lab.gone(wanted)
        lab.type(b"r")
        await lab.gone("SESSIONS")
        await lab.shows("s1\u241b]0;EVIL")
        assert strange(lab.new(), STARTING) == []
        assert not lab.screen.take_happenings()


async def test_titles_and_notifications_are_text(tmp_path: Path) -> None:
    async with workstation(tmp_path) as lab:
        for end in (b"\x07", b"\x1b\\"):
            await lab.print(b"\x1b]2;a title " + ESCAPES[5:] + end, reset=False)
            await lab.shows("a title")
            await lab.print(b"\x1b]2;EVIL\x1b]52;c;RVZJTA==" + end, reset=False)
        await lab.print(b"\x1b]777;notify;note;[bold]loud[/] " + ESCAPES[5:] + b"\x07", reset=False)
        await lab.shows("says \u201cnote: [bold]loud[/]")
        await lab.shows("[bold]b[/][@click=app.quit]c[/]\u201d")
        for payload in (b"\x1b]9;4;1;40\x07", b"\x1b]7;file://h/EVIL\x07", b"\x1b]133;A\x07"):
            await lab.print(payload, reset=False)
        assert strange(lab.new(), STARTING) == []
        assert not lab.screen.take_happenings()


@pytest.mark.parametrize(("wish", "rings"), [("mark", False), ("sound", True), ("off", False)])
async def test_the_users_terminal_rings_only_if_the_user_wants(
    tmp_path: Path, wish: str, rings: bool
) -> None:
    async with workstation(tmp_path, wish) as lab:
        assert strange(lab.new(), STARTING) == []
        await lab.print(b"\x07" * 100, reset=False)
        if wish != "off":
            await lab.shows("\u266a")
        await lab.print(b"\x07" * 100, reset=False)
        assert strange(lab.new()) == ["\x07"] * rings


async def test_the_clipboard_is_written_only_after_a_yes_and_exactly_so(tmp_path: Path) -> None:
    async with workstation(tmp_path) as lab:
        wish = base64.b64encode(b"a text \x1b[31m\xe2\x80\xaefor you")
        await lab.print(b"\r\n" * 4, reset=False)  # the strip covers the first lines
        await lab.print(b"\x1b]52;c;" + wish + b"\x07", reset=False)
        await lab.shows("wanted to write your clipboard once")
        await enter(lab)
        await lab.print(b"\x1b]52;c;" + wish + b"\x07", reset=False)
        await lab.shows("on your clipboard")
        await lab.print(b"\x1b]52;c;" + base64.b64encode(b"x" * (101 << 10)) + b"\x07", reset=False)
        await lab.shows("more than 100 KiB is refused")
        assert strange(lab.new(), STARTING) == []
        lab.type(b"\x07e")
        await lab.shows("let it")
        while True:  # keys count a moment after the question got them
            lab.type(b"y")
            try:
                await lab.shows_within("It is on your clipboard", 0.3)
                break
            except TimeoutError:
                continue
        (out,) = strange(lab.new())
        head, _, body = out.rpartition(";")
        assert head == "\x1b]52;c"
        assert base64.b64decode(body.rstrip("\x07\x1b\\")).decode() == "a text  [31m\u202efor you"
