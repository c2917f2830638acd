"""Panes from the screen's side: real workers, real programs, a keeper's socket before them."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.errors import AppError
from app.ui.panes import PaneHub
from tests.doubles.engines import cache_folder
from tests.doubles.pane_server import PaneServer
from tests.doubles.pane_watch import Watcher, hub_of, spare_of
from tests.doubles.worker_link import LAUNCHER
from vm.errors import HostLacks
from vm.terminal.palette import TerminalPalette

if TYPE_CHECKING:
    from app.ui.pane import Pane
    from widgets.terminal_feed import FeedState


def ends_with(states: list[FeedState], *last: FeedState) -> bool:
    return tuple(states[-len(last) :]) == last


def type_line(pane: Pane, text: str) -> None:
    for c in text:
        pane.send_key("space" if c == " " else c, c)
    pane.send_key("enter", "\r")


SHELL = ["bash", "--norc", "--noprofile"]


async def test_the_first_worker_says_what_holds() -> None:
    async with hub_of() as hub:
        hello = await hub.start()
        assert hello.seccomp
        assert hub.hello == hello


async def test_a_shell_in_a_pane(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s", SHELL) as server, hub_of() as hub:
        pane = hub.open("one", tmp_path / "s", columns=90, rows=20)
        watcher = Watcher(pane)
        await watcher.enters("live")
        await watcher.until(lambda: (pane.columns, pane.rows) == (90, 20))
        await watcher.shows("$")
        type_line(pane, "stty size; echo done")
        await watcher.shows("20 90")
        pane.resize(61, 15)
        await watcher.until(lambda: (pane.columns, pane.rows) == (61, 15))
        assert server.sizes[-1] == (61, 15)
        assert "done" in (await pane.text())
        assert server.acked == len(server.record)
        type_line(pane, "exit 7")
        await watcher.enters("ended")
        assert pane.status == 7
        assert "7" in pane.message


async def test_strips_are_as_wide_as_the_terminal_whatever_is_in_them(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s") as server, hub_of() as hub:
        pane = hub.open("one", tmp_path / "s", columns=40, rows=6)
        watcher = Watcher(pane)
        await watcher.enters("live")
        await server.put("漢字 👍🏽 🇺🇸 👨‍👩‍👧 ❤️ é e\u0301 ☁ नमस्ते \u3000|end".encode())
        await watcher.shows("end")
        for y in range(6):
            strip = pane.strip(y)
            assert strip is not None
            assert sum(segment.cell_length for segment in strip) == strip.cell_length == 40


async def test_titles_bells_and_clipboard_are_told(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s") as server, hub_of() as hub:
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        await watcher.enters("live")
        await server.put(b"\x1b]2;a [b]title[/b]\x1b[31m\x07\x07\x1b]52;c;G1s=\x07")
        await server.put(b"\x1b]2;plain \xe2\x80\xae title\x07")
        await watcher.until(lambda: bool(watcher.clipboard) and watcher.bells > 0)
        assert watcher.clipboard == [" ["]
        await watcher.until(lambda: pane.title == "plain title")
        assert pane.title.isprintable()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
async def test_a_dead_worker_is_replaced_at_once_and_the_screen_is_back(
    how: signal.Signals, tmp_path: Path
) -> None:
    async with PaneServer(tmp_path / "s", SHELL) as server, hub_of() as hub:
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        await watcher.shows("$")
        type_line(pane, "printf '\\033[1;31mred\\033[m\\n'; seq 100")
        await watcher.until(lambda: watcher.lines()[-1] == "$" and "100" in watcher.lines())
        before = watcher.lines()
        pid = pane.worker_pid
        assert pid is not None
        spare = await spare_of(hub)
        watcher.states.clear()
        os.kill(pid, how)
        if how == signal.SIGSTOP:  # a worker that hangs is ended by whoever notices
            os.kill(pid, signal.SIGKILL)
        await watcher.until(lambda: watcher.states[-1:] == ["live"])
        await watcher.until(lambda: watcher.lines() == before)
        assert watcher.states == ["restarting", "live"]
        assert pane.worker_pid == spare
        type_line(pane, "echo still here")
        await watcher.shows("still here")
        assert server.connections == 2


async def test_what_was_shown_stays_until_the_new_worker_draws(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s") as server, hub_of() as hub:
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        await watcher.enters("live")
        await server.put(b"content")
        await watcher.shows("content")
        assert pane.worker_pid is not None
        os.kill(pane.worker_pid, signal.SIGKILL)
        await watcher.enters("restarting")
        assert watcher.lines()[0] == "content"
        await watcher.enters("live")


async def test_a_terminal_that_ends_its_worker_each_time_is_given_up_alone(tmp_path: Path) -> None:
    async with (
        PaneServer(tmp_path / "a") as bad,
        PaneServer(tmp_path / "b") as good,
        hub_of() as hub,
    ):
        first, second = hub.open("a", tmp_path / "a"), hub.open("b", tmp_path / "b")
        bad_watcher, watcher = Watcher(first), Watcher(second)
        await watcher.enters("live")
        for _ in range(3):
            await bad_watcher.enters("live")
            assert first.worker_pid is not None
            os.kill(first.worker_pid, signal.SIGSEGV)
            await bad_watcher.until(lambda: first.state != "live")
        await bad_watcher.enters("broken")
        assert first.message
        await good.put(b"unharmed")
        await watcher.shows("unharmed")
        assert bad.connections == 3


async def test_each_pane_has_a_worker_of_its_own(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s"), hub_of() as hub:
        panes = [hub.open(str(n), tmp_path / "s") for n in range(3)]
        watchers = [Watcher(pane) for pane in panes]
        for watcher in watchers:
            await watcher.enters("live")
        assert len({pane.worker_pid for pane in panes}) == 3


async def test_panes_can_share_a_worker(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s") as server, hub_of(share=8) as hub:
        panes = [hub.open(str(n), tmp_path / "s") for n in range(3)]
        watchers = [Watcher(pane) for pane in panes]
        for watcher in watchers:
            await watcher.enters("live")
        assert len({pane.worker_pid for pane in panes}) == 1
        panes[0].close()
        await server.put(b"for the others")
        await watchers[1].shows("for the others")
        assert panes[1].worker_pid is not None
        os.kill(panes[1].worker_pid, signal.SIGKILL)
        for watcher in watchers[1:]:
            states = watcher.states
            await watcher.until(functools.partial(ends_with, states, "restarting", "live"))


async def test_a_keeper_that_comes_later_is_found(tmp_path: Path) -> None:
    async with hub_of() as hub:
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        await watcher.enters("lost")
        assert "keeper" in pane.message
        async with PaneServer(tmp_path / "s") as server:
            await watcher.enters("live")
            await server.put(b"here")
            await watcher.shows("here")


async def test_a_keeper_that_dies_and_comes_back(tmp_path: Path) -> None:
    async with hub_of() as hub:
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        async with PaneServer(tmp_path / "s") as server:
            await watcher.enters("live")
            await server.put(b"first")
            await watcher.shows("first")
            pid = pane.worker_pid
        (tmp_path / "s").unlink(missing_ok=True)
        await watcher.enters("lost")
        assert watcher.lines()[0] == "first"
        async with PaneServer(tmp_path / "s") as server:
            await watcher.enters("live")
            await server.put(b"second")
            await watcher.shows("second")
        assert pane.worker_pid == pid


async def test_a_keeper_that_hangs_up_each_time_is_not_asked_without_pause(tmp_path: Path) -> None:
    calls = 0

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        writer.close()

    server = await asyncio.start_unix_server(hang_up, str(tmp_path / "s"))
    async with hub_of() as hub, server:
        watcher = Watcher(hub.open("one", tmp_path / "s"))
        await watcher.enters("lost")
        with pytest.raises(TimeoutError):
            await watcher.enters("live", seconds=1)
        assert 2 <= calls < 10


async def test_a_socket_path_that_is_too_long_is_told(tmp_path: Path) -> None:
    async with hub_of() as hub:
        watcher = Watcher(hub.open("one", tmp_path / ("x" * 200)))
        await watcher.enters("lost")


async def test_an_inactive_pane_takes_the_guests_size(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s", size=(66, 22)) as server, hub_of() as hub:
        pane = hub.open("one", tmp_path / "s", columns=100, rows=30, active=False)
        watcher = Watcher(pane)
        await watcher.until(lambda: (pane.columns, pane.rows) == (66, 22))
        assert server.sizes == []
        pane.set_active(True)
        await watcher.until(lambda: (pane.columns, pane.rows) == (100, 30))
        assert server.sizes == [(100, 30)]


async def test_colours_are_the_palettes_and_change_with_it(tmp_path: Path) -> None:
    first = TerminalPalette((1, 1, 1), (2, 2, 2))
    second = TerminalPalette((3, 3, 3), (4, 4, 4))
    async with PaneServer(tmp_path / "s") as server, hub_of(palette=first) as hub:
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        await watcher.enters("live")

        def background() -> object:
            strip = pane.strip(0)
            style = next(iter(strip)).style if strip else None
            return style.bgcolor.triplet if style and style.bgcolor else None

        await watcher.until(lambda: background() == (2, 2, 2))
        hub.set_palette(second)
        await watcher.until(lambda: background() == (4, 4, 4))
        await server.put(b"\x1b]11;?\x07")
        await server.until_typed(b"rgb:0404/0404/0404")


async def test_no_process_is_left_behind(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s"), hub_of() as hub:
        await hub.start()
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        await watcher.enters("live")
        pids = [pid for pid in (pane.worker_pid,) if pid]
        pane.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_worker_that_cannot_start_is_an_error_with_a_hint() -> None:
    hub = PaneHub(launcher=["/bin/false"])
    with pytest.raises(AppError) as caught:
        await hub.start()
    assert caught.value.hint
    await hub.close()


async def test_a_pane_whose_worker_cannot_start_is_broken(tmp_path: Path) -> None:
    hub = PaneHub(launcher=["/bin/false"])
    async with PaneServer(tmp_path / "s"):
        watcher = Watcher(hub.open("one", tmp_path / "s"))
        await watcher.enters("broken")
        assert "ended at its start" in watcher.pane.message
        assert "cloche doctor" in watcher.pane.message
        with pytest.raises(ConnectionError):
            await watcher.pane.text()
    await hub.close()


FAILS_TWICE = 'mkdir "$0/1" 2>&1 || mkdir "$0/2" 2>&1 || exec "$@"'
"""Stands before a launcher: the first two workers end at their start."""


async def test_workers_that_did_not_start_are_no_crashes_of_the_terminal(tmp_path: Path) -> None:
    fails = tmp_path / "fails"
    fails.mkdir()
    hub = PaneHub(
        cache=cache_folder(), launcher=["/bin/sh", "-c", FAILS_TWICE, str(fails), *LAUNCHER]
    )
    async with PaneServer(tmp_path / "s"):
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        for _ in range(2):
            await watcher.enters("live")
            assert pane.worker_pid is not None
            os.kill(pane.worker_pid, signal.SIGKILL)
            await watcher.until(lambda: pane.state != "live")
        await watcher.enters("live")
        assert len(list(fails.iterdir())) == 2
    await hub.close()


FATAL = """
import os, sys
sys.path.insert(0, {root!r})
from vm.terminal import wire
text = wire.pack_texts('no-sandbox', 'It cannot be confined.', 'Run: something')
os.write(int(sys.argv[1]), wire.message(wire.Up.FATAL, 0, text))
"""

LIAR = """
import os, socket, sys, time
sys.path.insert(0, {root!r})
from vm.terminal import wire
link = socket.socket(fileno=int(sys.argv[1]))
hello = wire.pack_hello(wire.Hello(wire.PROTOCOL, 7, True, 'liar'))
link.sendall(wire.message(wire.Up.HELLO, 0, hello))
data = link.recv(65536)
if data:
    link.sendall({nonsense})
    link.recv(65536)
    time.sleep(30)  # longer than anybody waits for more of it
"""


def fake_worker(folder: Path, program: str, **values: object) -> list[str]:
    import sys

    root = str(Path(__file__).resolve().parents[2])
    (folder / "worker.py").write_text(program.format(root=root, **values))
    return [sys.executable, "-P", str(folder / "worker.py")]


async def test_a_host_without_a_sandbox_is_told_as_such(tmp_path: Path) -> None:
    hub = PaneHub(launcher=fake_worker(tmp_path, FATAL))
    with pytest.raises(HostLacks) as caught:
        await hub.start()
    assert (caught.value.code, caught.value.hint) == ("no-sandbox", "Run: something")
    async with PaneServer(tmp_path / "s"):
        watcher = Watcher(hub.open("one", tmp_path / "s"))
        await watcher.enters("broken")
        assert watcher.pane.message == "It cannot be confined. Run: something"
    await hub.close()


@pytest.mark.parametrize(
    "nonsense",
    [
        "b'\\xff' * 64",
        "wire.message(wire.Up.FRAME, 1, b'\\xff' * 100)",
        "wire.message(wire.Up.STATE, 1, b'')",
        "wire.message(wire.Up.TITLE, 1, b'\\xff\\xff\\xff\\xff')",
        "wire.message(200, 1, b'')",
        "wire.message(wire.Up.COPIED, 1, b'1')",
    ],
)
async def test_a_worker_that_speaks_nonsense_is_ended(nonsense: str, tmp_path: Path) -> None:
    hub = PaneHub(launcher=fake_worker(tmp_path, LIAR, nonsense=nonsense))
    async with PaneServer(tmp_path / "s"):
        watcher = Watcher(hub.open("one", tmp_path / "s"))
        await watcher.enters("broken")
        assert watcher.states[0] == "restarting"
    await hub.close()
