"""The whole path with the worker killed at random while the guest prints: no session is lost.

The keeper's end is a socket with a record (`PaneServer`), the worker is the real one in its
sandbox. What is shown afterwards must be what an engine shows that nobody disturbed.
"""

from __future__ import annotations

import os
import random
import signal
from typing import TYPE_CHECKING

import pytest

from tests.conformance.guest_noise import stream
from tests.doubles.engines import engine
from tests.doubles.pane_server import PaneServer
from tests.doubles.pane_watch import Watcher, hub_of

if TYPE_CHECKING:
    from pathlib import Path

    from textual.strip import Strip

    from app.ui.pane import Pane
    from app.ui.panes import PaneHub

SIGNALS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS)
END = b"\x18\x1b\\\x1b[?2026l\x1b[?25l\x1b[1;1Hthe end"
"""Ends whatever the noise left open, and says that all of it came through."""


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a pane be restarted as often as the tests kill its worker."""
    monkeypatch.setattr("app.ui.pane.CRASH_SPAN_S", 0.0)


def undisturbed(hub: PaneHub, record: bytes, columns: int, rows: int) -> list[Strip]:
    """What an engine of that size shows of a record, as the hub draws it."""
    terminal = engine(columns, rows, hub.palette)
    terminal.feed(record)
    frame = terminal.frame(full=True)
    terminal.close()
    return [hub.maker.strip(frame.rows[y], columns) for y in range(rows)]


def shown(pane: Pane) -> list[Strip | None]:
    return [pane.strip(y) for y in range(pane.rows)]


def kill(pane: Pane, how: signal.Signals) -> int | None:
    """Kill the worker of a pane, if there is one just now; return its process."""
    pid = pane.worker_pid
    if pid is not None:
        os.kill(pid, how)
    return pid


@pytest.mark.parametrize("seed", range(3))
async def test_screens_are_those_of_an_engine_that_nobody_killed(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    size = chosen.randrange(30, 140), chosen.randrange(8, 45)
    killed: set[int | None] = set()
    async with PaneServer(tmp_path / "s", size=size) as server, hub_of() as hub:
        pane = hub.open("one", tmp_path / "s", columns=size[0], rows=size[1])
        watcher = Watcher(pane)
        await watcher.enters("live")
        for step in range(60):
            await server.put(stream(chosen, 3_000))
            if step % 10 == 5:
                killed.add(kill(pane, chosen.choice(SIGNALS)))
            elif chosen.random() < 0.5:
                await watcher.next()
        await server.put(END)
        await watcher.shows("the end")
        wanted = undisturbed(hub, bytes(server.record), *size)
        await watcher.until(lambda: shown(pane) == wanted)
        assert pane.state == "live"
        assert len(killed - {None}) >= 3
        pane.send_text("still here")
        await server.until_typed(b"still here")
        assert server.exit_status is None


async def test_kills_while_the_size_changes(tmp_path: Path) -> None:
    chosen = random.Random(7)
    async with PaneServer(tmp_path / "s") as server, hub_of() as hub:
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        await watcher.enters("live")
        for step in range(24):
            await server.put(stream(chosen, 2_000))
            pane.resize(chosen.randrange(20, 200), chosen.randrange(5, 60))
            if step % 4 == 3:
                kill(pane, chosen.choice(SIGNALS))
                await watcher.enters("live")
        pane.resize(90, 25)
        await server.put(END)
        await watcher.until(lambda: (pane.columns, pane.rows) == (90, 25))
        await watcher.shows("the end")
        # a worker that begins at this size replays the record at this size
        watcher.states.clear()
        assert kill(pane, signal.SIGSEGV) is not None
        await watcher.until(lambda: watcher.states[-1:] == ["live"])
        wanted = undisturbed(hub, bytes(server.record), 90, 25)
        await watcher.until(lambda: shown(pane) == wanted)
        assert server.size == (90, 25)


async def test_a_shell_lives_through_kills_and_hears_every_line(tmp_path: Path) -> None:
    chosen = random.Random(11)
    argv = ["bash", "--norc", "--noprofile"]
    async with PaneServer(tmp_path / "s", argv) as server, hub_of() as hub:
        server.program = 1  # a keeper that counts what it took, so that nothing is typed twice
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        await watcher.shows("$")
        shell = server.pid
        for number in range(8):
            pane.send_text(f"seq 400; echo line-$((1000 + {number}))\r")
            await server.until_typed(b"+ %d)" % number)
            kill(pane, chosen.choice(SIGNALS))
            await watcher.shows(f"line-{1000 + number}")
        assert server.pid == shell
        assert server.exit_status is None
        assert server.record.count(b"\nline-10") == 8
        os.kill(shell, 0)


async def test_killing_one_worker_disturbs_no_other_pane(tmp_path: Path) -> None:
    chosen = random.Random(13)
    async with (
        PaneServer(tmp_path / "a") as first_server,
        PaneServer(tmp_path / "b") as second_server,
        hub_of() as hub,
    ):
        first, second = hub.open("a", tmp_path / "a"), hub.open("b", tmp_path / "b")
        bad, good = Watcher(first), Watcher(second)
        await bad.enters("live")
        await good.enters("live")
        good.states.clear()
        for _ in range(5):
            await first_server.put(stream(chosen, 2_000))
            await second_server.put(stream(chosen, 2_000))
            kill(first, chosen.choice(SIGNALS))
            await bad.until(lambda: first.worker_pid is not None and first.state == "live")
        for server, watcher in ((first_server, bad), (second_server, good)):
            await server.put(END)
            await watcher.shows("the end")
        for pane, server, watcher in ((first, first_server, bad), (second, second_server, good)):
            wanted = undisturbed(hub, bytes(server.record), 80, 24)
            await watcher.until(lambda: shown(pane) == wanted)  # noqa: B023 - awaited at once
        assert second_server.connections == 1
        assert "restarting" not in good.states
