"""How often panes are drawn: hidden, covered and slow views; and output of the worst kinds."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from app.ui import pane_talk
from app.ui.pane import Pane
from app.ui.pane_talk import SHARE
from tests.doubles.pane_server import PaneServer
from tests.doubles.pane_watch import DEADLINE, Watcher, hub_of

if TYPE_CHECKING:
    from pathlib import Path

    from app.ui.pane_strips import StripMaker
    from vm.terminal.screen import Frame
    from widgets.terminal_feed import FeedRate


FOR_EVER = 800
"""A share that a pane would wait 40 s for."""


async def test_hidden_panes_are_not_drawn_and_come_back_whole(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s") as server, hub_of() as hub:
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        await watcher.enters("live")
        pane.set_rate("hidden")
        frames = watcher.frames
        for n in range(50):
            await server.put(b"line %d\r\n" % n)
        await server.until(lambda: server.acked == len(server.record))
        assert watcher.frames <= frames + 1
        pane.set_rate("focused")
        await watcher.shows("line 49")


async def test_a_pane_that_is_shown_again_has_its_whole_page_in_one_frame(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s") as server, hub_of() as hub:
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        await watcher.enters("live")
        pane.set_rate("hidden")
        page = [f"line {n} of a page" for n in range(24)]
        for _ in range(20):
            await server.put(b"\x1b[H\x1b[2J" + "\r\n".join(page).encode())
        await server.until(lambda: server.acked == len(server.record))
        assert (await pane.text()) is not None  # whatever was on its way is here
        frames = watcher.frames
        pane.set_rate("visible")
        await watcher.until(lambda: watcher.frames > frames)
        assert watcher.lines() == page


async def test_a_view_that_is_covered_costs_little_and_paints_at_once_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pane_talk, "UNPAINTED_S", 4 * DEADLINE)
    monkeypatch.setattr(pane_talk, "UNPAINTED_MAX_S", 4 * DEADLINE)
    async with PaneServer(tmp_path / "s") as server, hub_of() as hub:
        pane = hub.open("one", tmp_path / "s")
        pane.set_rate("focused")
        watcher = Watcher(pane)
        await watcher.enters("live")
        watcher.paints = False
        frames = watcher.frames
        for number in range(200):
            await server.put(b"\r\nline %d" % number)
            await server.until(lambda: server.acked == len(server.record))
        assert watcher.frames - frames <= 1  # the one that waits to be painted
        watcher.paints = True
        pane.painted()
        await watcher.shows("line 199")  # long before the frame's time is over


async def test_a_view_that_never_paints_is_served_slowly_and_not_forgotten(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s") as server, hub_of() as hub:
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        watcher.paints = False
        await watcher.enters("live")
        await server.put(b"one\r\n")
        await watcher.shows("one")
        await server.put(b"two\r\n")
        await watcher.shows("two")


@pytest.mark.parametrize("rate", ["visible", "focused"])
@pytest.mark.parametrize("paints", [True, False])
async def test_a_pane_that_is_dear_to_draw_takes_its_share_and_not_all_of_the_screen(
    rate: FeedRate, paints: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show, slow, share = Pane.show, 0.05, SHARE if rate == "visible" else FOR_EVER
    monkeypatch.setattr(pane_talk, "SHARE", share)

    def dear(pane: Pane, frame: Frame, maker: StripMaker) -> bool:
        time.sleep(slow)  # that is the test: a screen that is slow to draw
        return show(pane, frame, maker)

    monkeypatch.setattr(Pane, "show", dear)
    async with PaneServer(tmp_path / "s") as server, hub_of() as hub:
        pane = hub.open("one", tmp_path / "s")
        pane.set_rate(rate)
        watcher = Watcher(pane)
        await watcher.enters("live")
        watcher.paints = paints
        begin, frames = time.monotonic(), watcher.frames
        while watcher.frames < frames + 4:
            await server.put(b"\r\nmore")
            await asyncio.sleep(0)
            if not paints:
                pane.painted()  # later than it was told, as a real view does
        taken = time.monotonic() - begin
        assert taken >= 3 * slow * share if rate == "visible" else taken < 3 * slow * share
        monkeypatch.setattr(pane_talk, "SHARE", FOR_EVER)
        await server.put(b"\r\nmore")
        await watcher.until(lambda: watcher.frames > frames + 4)
        frames = watcher.frames
        await server.put(b"\r\nthe end")
        pane.painted()
        pane.set_rate("focused")
        begin = time.monotonic()
        await watcher.until(lambda: watcher.frames > frames)
        assert time.monotonic() - begin < slow * FOR_EVER


async def test_a_pane_nobody_listens_to_keeps_its_screen(tmp_path: Path) -> None:
    async with PaneServer(tmp_path / "s") as server, hub_of() as hub:
        pane = hub.open("one", tmp_path / "s")
        await server.put(b"unseen")
        await server.until(lambda: server.acked == 6)
        watcher = Watcher(pane)
        await watcher.shows("unseen")


@pytest.mark.parametrize(
    "output",
    [
        b"x" * 10_000_000,
        "漢".encode() * 3_000_000,
        bytes(range(128, 256)) * 8_000,
        b"\xe6\xbc" * 100_000 + b"\xff\xfe\xc0\xaf" * 100_000,
        b"\x1b[" + b"1;" * 500_000,
        b"\x1b]2;" + b"t" * 2_000_000,
        b"\x1bP" + b"q" * 2_000_000 + b"\x1b[",
        b"\x1b[999999999;999999999H\x1b[2147483648b" * 1000,
    ],
    ids=["one line", "wide line", "high bytes", "bad UTF-8", "CSI", "OSC", "DCS", "numbers"],
)
async def test_bad_output_neither_ends_a_pane_nor_outlives_a_reset(
    output: bytes, tmp_path: Path
) -> None:
    async with PaneServer(tmp_path / "s") as server, hub_of() as hub:
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        await watcher.enters("live")
        pid = pane.worker_pid
        await server.put(output)
        await server.put(b"\x18\x1bcand after")
        await watcher.shows("and after", 30)
        assert pane.worker_pid == pid
        pane.send_key("a", "a")
        await server.until_typed(b"a")
