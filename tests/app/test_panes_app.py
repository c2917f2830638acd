"""A live terminal in a Textual app: by pilot, and in a real terminal with a hostile guest."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.doubles.outer_pty import OuterScreen, pane_app
from tests.doubles.pane_app import PaneApp
from tests.doubles.pane_server import PaneServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from textual.pilot import Pilot

SHELL = ["bash", "--norc", "--noprofile"]
DEADLINE = 120.0
"""Seconds: a worker may take 15 to be ready (`START_S`), and a dead one is followed by two."""

PROGRAM = Path(__file__).resolve().parents[1] / "doubles" / "pane_app.py"


# -- by pilot --------------------------------------------------------------------------------


def page(app: PaneApp) -> list[str]:
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]  # pyright: ignore[reportPrivateUsage]


async def shows(
    pilot: Pilot[None], app: PaneApp, condition: Callable[[list[str]], bool]
) -> list[str]:
    async with asyncio.timeout(DEADLINE):
        while not condition(shown := page(app)):
            await pilot.pause(0.02)
    return shown


async def type_line(pilot: Pilot[None], text: str) -> None:
    await pilot.press(*("space" if c == " " else c for c in text), "enter")


async def test_a_shell_is_usable(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s", SHELL) as server:
        app = PaneApp(tmp_path / "s")
        async with app.run_test(size=(70, 18)) as pilot:
            await shows(pilot, app, lambda shown: shown[0] == "$")
            await type_line(pilot, "stty size")
            await shows(pilot, app, lambda shown: "18 70" in shown)
            await type_line(pilot, "sleep 99")
            await shows(pilot, app, lambda shown: "$ sleep 99" in shown)
            await pilot.press("ctrl+c")
            await shows(pilot, app, lambda shown: any(line.endswith("^C") for line in shown))
            await pilot.press("ctrl+g", "x")
            assert app.prefixed == ["x"]
            await pilot.resize_terminal(90, 25)
            await server.until(lambda: server.size == (90, 25))
            await type_line(pilot, "stty size")
            await shows(pilot, app, lambda shown: "25 90" in shown)


async def test_vim_is_usable(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text("one\ntwo\n")
    async with PaneServer(tmp_path / "s", ["vim", "-u", "NONE", "-N", str(file)]) as server:
        app = PaneApp(tmp_path / "s")
        async with app.run_test(size=(80, 24)) as pilot:
            await shows(pilot, app, lambda shown: shown[:3] == ["one", "two", "~"])
            await pilot.press("down", "A", "!", "escape")
            await shows(pilot, app, lambda shown: shown[1] == "two!")
            await pilot.press("colon", "w", "q", "enter")
            await server.until(lambda: True)
            await shows(pilot, app, lambda _: server.exit_status is not None)
    assert file.read_text() == "one\ntwo!\n"


async def test_less_is_usable(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"line {i}\n" for i in range(1, 100)))
    async with PaneServer(tmp_path / "s", ["less", str(tmp_path / "text")]):
        app = PaneApp(tmp_path / "s")
        async with app.run_test(size=(80, 24)) as pilot:
            await shows(pilot, app, lambda shown: shown[0] == "line 1")
            await pilot.press("space")
            await shows(pilot, app, lambda shown: shown[0] == "line 24")
            await pilot.press("G")
            await shows(pilot, app, lambda shown: shown[22] == "line 99")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
async def test_the_screen_outlives_its_worker(how: signal.Signals, tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s", SHELL):
        app = PaneApp(tmp_path / "s")
        async with app.run_test(size=(70, 18)) as pilot:
            await shows(pilot, app, lambda shown: shown[0] == "$")
            await type_line(pilot, "seq 5")
            before = await shows(pilot, app, lambda shown: "5" in shown and shown[6] == "$")
            assert app.pane is not None
            pid = app.pane.worker_pid
            assert pid is not None
            os.kill(pid, how)
            pane = app.pane
            await shows(pilot, app, lambda _: pane.worker_pid not in (pid, None))
            assert await shows(pilot, app, lambda shown: pane.state == "live" and shown == before)
            await type_line(pilot, "echo again")
            await shows(pilot, app, lambda shown: "again" in shown)


# -- in a real terminal ----------------------------------------------------------------------


class Outer(OuterScreen):
    """The user's terminal, typed at at once."""

    def type(self, data: bytes) -> None:
        os.write(self.fd, data)


@asynccontextmanager
async def outer_terminal(socket: Path) -> AsyncGenerator[Outer]:
    async with pane_app(str(socket)) as fd:
        yield Outer(fd)


HOSTILE = [
    b"\x1b]52;c;aGVsbG8=\x07",
    b"\x1b]52;c;?\x07",
    b"\x1b]0;evil title\x07",
    b"\x1b]2;evil title\x1b\\",
    b"\x1b]8;;http://evil.example\x07link\x1b]8;;\x07",
    b"\x1b]9;evil\x07",
    b"\x1b]777;notify;evil;body\x07",
    b"\x1b]4;1;rgb:ff/00/00\x07",
    b"\x1b]11;rgb:ff/00/00\x07",
    b"\x1b]1337;File=name=x;inline=1:AAAA\x07",
    b"\x1bP$qm\x1b\\",
    b"\x1bPq#0;2;0;0;0~\x1b\\",
    b"\x1b_Gf=24,s=1,v=1;AAAA\x1b\\",
    b"\x1b^private\x1b\\",
    b"\x1bXstart of string\x1b\\",
    # C1 bytes introduce nothing in UTF-8, so what follows is text that a frame may rightly show.
    b"\x90$qm\x9c\x9d0;shown\x9c\x9b31m",
    b"\xc2\x9d0;shown\x07\xc2\x90x\xc2\x9c",
    b"\x1b[?1049h\x1b[?1049l\x1b[8;50;50t\x1b[21t\x1b[5i",
    b"\x1b[?1000h\x1b[?1003h\x1b[>31u\x1b[>4;2m",
    b"\x07\x07\x07\x05\x0e\x0f",
    b"[bold red]markup[/] {{braces}} \\[x]",
    "\u202eright to left\u2066 isolate\u200f".encode(),
    b"\x1b(0qqq\x1b(B",
    b"\x1bc",
]

LINK = re.compile(rb"\x1b\]8;(?:id=\d+;https?://[!-~]{1,2048}|;)\x1b\\")
"""A link as Rich writes it: http and https are passed on, where a frame shows their cells."""
ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[^\[])")
OWN = re.compile(
    rb"\x1b\[(?:[0-9;]*[mHABCDGK]|\?(?:25|7|1000|1003|1015|1006|1004|1016|1049|2004|2026|2048)[hl]"
    rb"|\?20(?:26|48)\$p|>\d+u|<u|\?1049[hl])\Z"
)


async def test_nothing_of_a_guest_but_text_colour_and_links_reaches_the_users_terminal(
    tmp_path: Path,
) -> None:
    async with PaneServer(tmp_path / "s") as server, outer_terminal(tmp_path / "s") as outer:
        await server.put(b"ready")
        await outer.until(lambda shown: any("ready" in line for line in shown))
        for number, data in enumerate(HOSTILE):
            # whole, byte by byte, and cut short before other text
            await server.put(data)
            for byte in data:
                await server.put(bytes([byte]))
            await server.put(data[: len(data) // 2] + b"\x18\x1b\\\x1b[?2026l\x1bc")
            await server.put(b"step %d" % number)
            await outer.until(
                lambda shown, n=number: any(f"step {n}" == line for line in shown)  # type: ignore[misc]  # mypy infers no type for `n`
            )
        # Textual itself sets the pointer's shape
        written = bytes(outer.written).replace(b"\x1b]22;default\x07", b"")
        assert not set("\x07\x05\x0e\x0f\x90\x9b\x9d\u202e\u2066") & set(written.decode())
        plain = LINK.sub(b"", written)
        strange = {it for it in ESCAPES.findall(plain) if not OWN.match(it)}
        assert strange == set()
        assert b"evil" not in written.replace(b"evil.example", b"")


async def test_a_link_of_a_guest_is_written_in_one_form(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s") as server, outer_terminal(tmp_path / "s") as outer:
        for data in (HOSTILE[4], b"\x1b]8;;javascript:evil\x1b\\text\x1b]8;;\x1b\\ end"):
            await server.put(data)
        await outer.until(lambda shown: any("linktext end" in line for line in shown))
        written = bytes(outer.written)
        assert [it for it in LINK.findall(written) if b"evil.example" in it]
        assert b"javascript" not in LINK.sub(b"", written)
        assert not any(
            it.startswith(b"\x1b]8") for it in re.findall(rb"\x1b\][0-9]+", LINK.sub(b"", written))
        )


async def test_keys_of_a_plain_terminal_reach_the_guest(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s") as server, outer_terminal(tmp_path / "s") as outer:
        await server.put(b"ready")
        await outer.until(lambda shown: any("ready" in line for line in shown))
        for sent, wanted in [
            (b"a", b"a"),
            (b"\x03", b"\x03"),
            (b"\x11", b"\x11"),
            (b"\x10", b"\x10"),
            (b"\t", b"\t"),
            (b"\x1b[A", b"\x1b[A"),
            (b"\x1b\r", b"\x1b\r"),
            (b"\x1b\x18", b"\x1b\x18"),
            (b"\x1b", b"\x1b"),
            ("é漢".encode(), "é漢".encode()),
            (b"\x1b[200~a\nb\x1b[201~", b"a\rb"),
        ]:
            server.typed.clear()
            outer.type(sent)
            await server.until_typed(wanted)
            assert server.typed == wanted
        server.typed.clear()
        outer.type(b"\x07\x07z")
        await server.until_typed(b"z")
        assert server.typed == b"\x07z"


async def test_an_escape_is_there_at_once(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s") as server, outer_terminal(tmp_path / "s") as outer:
        await server.put(b"ready")
        await outer.until(lambda shown: any("ready" in line for line in shown))
        waits: dict[bytes, list[float]] = {b"x": [], b"\x1b": []}
        for key in (b"x", b"\x1b") * 9:
            server.typed.clear()
            begin = asyncio.get_running_loop().time()
            outer.type(key)
            await server.until_typed(key)
            waits[key].append(asyncio.get_running_loop().time() - begin)
        # a busy machine holds up both; Textual alone holds an Escape up for 0.1 s and more
        assert min(waits[b"\x1b"]) - max(waits[b"x"]) < 0.09
