"""No lost key: what is typed while worker or keeper are replaced, and pastes of any size."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest

from app.ui import pane_talk, pane_user
from app.ui.pane_input import MAX_KEYS, MAX_PASTE, WINDOW
from tests.doubles.pane_server import PaneServer
from tests.doubles.pane_watch import Watcher, hub_of, live_pane
from widgets.terminal_feed import MouseInput

if TYPE_CHECKING:
    from pathlib import Path

    from app.ui.pane import Pane


def type_text(pane: Pane, text: str) -> None:
    for c in text:
        pane.send_key(c, c)


def kill(pane: Pane, how: signal.Signals = signal.SIGKILL) -> None:
    assert pane.worker_pid is not None
    os.kill(pane.worker_pid, how)


@pytest.fixture
async def server(tmp_path: Path) -> PaneServer:
    made = PaneServer(tmp_path / "s")
    made.program = 7
    return made


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
async def test_keys_typed_while_a_worker_is_replaced_arrive_in_order(
    server: PaneServer, how: signal.Signals
) -> None:
    async with live_pane(server, spare=True) as (pane, watcher):
        type_text(pane, "abc")
        kill(pane, how)
        type_text(pane, "def")
        await watcher.enters("restarting")
        type_text(pane, "ghi")
        pane.send_paste("jkl")
        type_text(pane, "mno")
        await watcher.enters("live")
        type_text(pane, "pqr")
        await server.until_typed(b"pqr")
        assert server.typed == b"abcdefghijklmnopqr"
        assert watcher.refused == []


async def test_keys_that_a_stopped_worker_had_not_passed_on_are_sent_again(
    server: PaneServer,
) -> None:
    async with live_pane(server, spare=True) as (pane, _):
        kill(pane, signal.SIGSTOP)
        type_text(pane, "typed into a worker that hangs"[:20].replace(" ", "_"))
        kill(pane)
        await server.until_typed(b"typed_into_a_worker_")
        assert server.typed == b"typed_into_a_worker_"


async def test_a_worker_that_hangs_is_replaced_and_loses_no_key(
    server: PaneServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pane_talk, "HANG_S", 0.5)
    async with live_pane(server, spare=True) as (pane, watcher):
        kill(pane, signal.SIGSTOP)
        type_text(pane, "abc")
        await watcher.enters("restarting")
        await server.until_typed(b"abc")
        assert server.typed == b"abc"


async def test_a_worker_whose_guest_reads_nothing_is_not_taken_for_one_that_hangs(
    server: PaneServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pane_talk, "HANG_S", 0.5)
    async with live_pane(server) as (pane, watcher):
        server.takes = False
        type_text(pane, "abc")
        with pytest.raises(TimeoutError):
            await watcher.enters("restarting", seconds=2.5)
        server.let_go()
        await server.until_typed(b"abc")
        assert server.connections == 1


async def test_keys_typed_at_once_wait_for_the_terminal(server: PaneServer) -> None:
    async with hub_of() as hub:
        pane = hub.open("one", server.path)
        type_text(pane, "early")
        pane.send_mouse(MouseInput("press", 1, 1, 1))
        async with server:
            await server.until_typed(b"early")
            assert server.typed == b"early"


async def test_keys_typed_while_the_keeper_is_away_arrive(server: PaneServer) -> None:
    async with hub_of() as hub:
        pane = hub.open("one", server.path)
        watcher = Watcher(pane)
        async with server:
            await watcher.enters("live")
            server.takes = False
            type_text(pane, "ab")
            await server.until(lambda: len(server.untaken) == 2)
        server.path.unlink(missing_ok=True)
        await watcher.enters("lost")
        type_text(pane, "cd")
        later = PaneServer(server.path)
        later.program = 7
        async with later:
            await watcher.enters("live")
            type_text(pane, "ef")
            await later.until_typed(b"ef")
            assert later.typed == b"abcdef"
        assert watcher.refused == []


async def test_keys_for_one_program_are_not_typed_into_another(server: PaneServer) -> None:
    async with hub_of() as hub:
        pane = hub.open("one", server.path)
        watcher = Watcher(pane)
        async with server:
            await watcher.enters("live")
        server.path.unlink(missing_ok=True)
        await watcher.enters("lost")
        type_text(pane, "rm")
        pane.send_paste("everything")
        later = PaneServer(server.path)
        later.program = 8
        async with later:
            await watcher.enters("live")
            type_text(pane, "ok")
            await later.until_typed(b"ok")
            assert later.typed == b"ok"
        assert watcher.refused == [
            "Another program runs now: 2 keys and 10 pasted characters dropped."
        ]


async def test_keys_are_not_kept_for_ever(
    server: PaneServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pane_user, "KEEP_S", 0.3)
    async with hub_of() as hub:
        pane = hub.open("one", server.path)
        watcher = Watcher(pane)
        async with server:
            await watcher.enters("live")
        server.path.unlink(missing_ok=True)
        await watcher.enters("lost")
        type_text(pane, "xyz")
        await watcher.until(lambda: bool(watcher.refused))
        assert "3 keys dropped" in watcher.refused[0]
        type_text(pane, "q")
        assert watcher.refused[1:] == [pane_user.AWAY]
        later = PaneServer(server.path)
        later.program = 7
        async with later:
            await watcher.enters("live")
            type_text(pane, "ok")
            await later.until_typed(b"ok")
            assert later.typed == b"ok"


async def test_a_program_that_ended_is_sent_nothing(server: PaneServer) -> None:
    async with live_pane(server) as (pane, watcher):
        server.takes = False
        type_text(pane, "abc")
        await server.until(lambda: len(server.untaken) == 3)
        server.end(0)
        await watcher.enters("ended")
        assert watcher.refused == ["The program has ended: 3 keys dropped."]
        type_text(pane, "late")
        assert watcher.refused[1:] == [pane_user.ENDED]
        server.let_go()
        server.exit_status = None
        await server.put(b"a new program")
        await watcher.enters("live")
        type_text(pane, "new")
        await server.until_typed(b"new")
        assert server.typed == b"abcnew"


# -- pastes --------------------------------------------------------------------------------------


async def test_a_large_paste_arrives_whole_and_keys_come_after_it(server: PaneServer) -> None:
    text = "".join(f"line {number} é漢\n" for number in range(300_000))
    assert len(text.encode()) > 5_000_000
    async with server, hub_of() as hub:
        pane = hub.open("one", server.path)
        watcher = Watcher(pane)
        await server.put(b"\x1b[?2004h")
        await watcher.until(lambda: pane.modes.bracketed_paste)
        pane.send_paste(text)
        type_text(pane, "z")
        await server.until(lambda: server.typed.endswith(b"z"), 60)
        wanted = b"\x1b[200~" + text.replace("\n", "\r").encode() + b"\x1b[201~z"
        got = bytes(server.typed).replace(b"\n", b"\r")
        assert got == wanted
        assert pane.pasting == 0


async def test_a_paste_into_a_guest_that_never_reads_is_bounded_everywhere(
    server: PaneServer,
) -> None:
    async with live_pane(server) as (pane, watcher):
        server.takes = False
        pane.send_paste("p" * 5_000_000)
        type_text(pane, "after")

        def sent() -> int:
            return sum(len(payload) for _, _, payload in server.untaken)

        await server.until(lambda: sent() >= WINDOW)
        assert (await pane.text()) is not None  # all that was on its way has been worked on
        assert sent() < WINDOW + (128 << 10)
        assert pane.pasting > 4_500_000
        pane.send_key("ctrl+c", None)
        assert pane.pasting == 0
        assert "was not sent" in watcher.refused[-1]
        server.let_go()
        await server.until(lambda: server.typed.endswith(b"\x03"), 20)
        assert bytes(server.typed).strip(b"p") == b"after\x03"


async def test_a_worker_that_dies_in_a_paste_loses_nothing_of_it(server: PaneServer) -> None:
    text = "".join(f"{number:07}\n" for number in range(100_000))
    async with server, hub_of() as hub:
        await hub.start()
        pane = hub.open("one", server.path)
        watcher = Watcher(pane)
        await server.put(b"\x1b[?2004h")
        await watcher.until(lambda: pane.modes.bracketed_paste)
        server.takes = False
        pane.send_paste(text)
        await server.until(lambda: len(server.untaken) > 3)
        kill(pane)
        await server.until(lambda: not server.untaken, 30)  # the next connection said who it is
        server.let_go()
        await server.until(lambda: server.typed.endswith(b"\x1b[201~"), 30)
        body = bytes(server.typed).removeprefix(b"\x1b[200~").removesuffix(b"\x1b[201~")
        assert body.replace(b"\n", b"\r") == text.replace("\n", "\r").encode()


async def test_what_is_too_much_is_refused_with_a_sentence(server: PaneServer) -> None:
    async with live_pane(server) as (pane, watcher):
        pane.send_paste("x" * (MAX_PASTE + 1))
        assert "16 MiB" in watcher.refused[-1]
        server.takes = False
        for _ in range(MAX_KEYS // 32):
            pane.send_key("a", "a")
        assert watcher.refused[1:] == [pane_user.TOO_MUCH]
        server.let_go()
        await server.until(lambda: len(server.typed) > 500)
        assert set(server.typed) == {ord("a")}


async def test_a_worker_that_stops_reading_costs_bounded_memory(server: PaneServer) -> None:
    async with live_pane(server) as (pane, _):
        link = pane._link  # pyright: ignore[reportPrivateUsage]
        assert link is not None
        kill(pane, signal.SIGSTOP)
        try:
            pane.send_paste("p" * 10_000_000)
            for number in range(20_000):
                pane.resize(20 + number % 100, 10 + number % 20)
                pane.send_key("a", "a")
                pane.send_mouse(MouseInput("move", number % 80, 1))
                pane.scroll_by(1)
            held = link._waiting_bytes  # pyright: ignore[reportPrivateUsage]
            assert held < 1 << 20
        finally:
            kill(pane, signal.SIGCONT)
        await server.until(lambda: server.typed.count(b"p") == 10_000_000, 60)
        assert link.alive


@pytest.mark.parametrize("size", [(0, 0), (1, 1), (-5, 3), (100_000, 100_000)])
async def test_any_size_is_made_one_that_the_engine_takes(
    server: PaneServer, size: tuple[int, int]
) -> None:
    async with live_pane(server) as (pane, watcher):
        pane.resize(*size)
        wanted = min(max(size[0], 20), 1000), min(max(size[1], 5), 500)
        await watcher.until(lambda: (pane.columns, pane.rows) == wanted)
        await server.put(b"still alive")
        await watcher.shows("still alive")


async def test_a_thousand_sizes_a_second_end_at_the_last_one(server: PaneServer) -> None:
    async with live_pane(server) as (pane, watcher):
        await server.put(b"some text that is folded again and again " * 200)
        for number in range(1000):
            pane.resize(20 + number % 130, 10 + number % 40)
            await asyncio.sleep(0)
        pane.resize(99, 31)
        await watcher.until(lambda: (pane.columns, pane.rows) == (99, 31))
        assert server.sizes[-1] == (99, 31)
        assert len(server.sizes) < 200
