"""Leaving an attached terminal, whatever keyboard its guest has switched on."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import struct
import sys
import termios
from pathlib import Path

import pytest

from tests.doubles.pane_server import PaneServer

PROGRAM = Path(__file__).parents[1] / "doubles" / "attach_program.py"


async def read_to_the_end(terminal: int) -> bytes:
    """What the program wrote until it ended."""
    got = bytearray()
    while data := await asyncio.to_thread(_read, terminal):
        got += data
    return bytes(got)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


@pytest.mark.parametrize(
    ("prefix", "typed"),
    [
        ("ctrl+g", b"\x07d"),
        ("ctrl+g", b"\x1b[103;5u\x1b[100u"),
        ("ctrl+g", b"\x1b[27;5;103~d"),
        ("ctrl+a", b"\x01d"),
        ("ctrl+a", b"\x07\x07\x1b[97;5ud"),
    ],
)
async def test_the_prefix_leaves(tmp_path: Path, prefix: str, typed: bytes) -> None:
    async with PaneServer(tmp_path / "s") as guest:
        pid, terminal = pty.fork()
        if pid == 0:
            argv = [sys.executable, "-P", str(PROGRAM), str(tmp_path / "s"), prefix]
            os.execv(sys.executable, argv)
        await guest.put(b"\x1b[>1uready")
        await guest.until(lambda: guest.acked > 0)
        await asyncio.to_thread(os.write, terminal, b"x")
        await guest.until_typed(b"x")
        async with asyncio.timeout(20):
            await asyncio.to_thread(os.write, terminal, typed)
            written = await read_to_the_end(terminal)
        _, status = await asyncio.to_thread(os.waitpid, pid, 0)
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0
    assert guest.typed == b"x" + (b"\x07\x07" if typed.startswith(b"\x07\x07") else b"")
    assert b"\x1b[<99u\x1b[>4m" in written


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (200, b" a connection to x.example:443 is held: cloche egress allow x.example "),
        (64, b" a connection to x.example:443 is held, elsewhere: cloche ps "),
        (40, b"443 is held, elsewhere: cloche ps "),
    ],
)
async def test_what_waits_is_told_in_the_last_row_and_never_scrolls_it(
    tmp_path: Path, columns: int, said: bytes
) -> None:
    wait = ("a connection to x.example:443 is held", "cloche egress allow x.example")
    async with PaneServer(tmp_path / "s") as guest:
        pid, terminal = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
            argv = [sys.executable, "-P", str(PROGRAM), str(tmp_path / "s"), "ctrl+g", *wait]
            os.execv(sys.executable, argv)
        await guest.put(b"ready")
        async with asyncio.timeout(20):
            written = b""
            while b"\x1b[999;1H" not in written or not written.endswith(b"\x1b[m\x1b8"):
                written += await asyncio.to_thread(_read, terminal)
            await asyncio.to_thread(os.write, terminal, b"\x07d")
            await read_to_the_end(terminal)
        await asyncio.to_thread(os.waitpid, pid, 0)
        os.close(terminal)
    note = written.partition(b"\x1b[999;1H\x1b[0;7m")[2].partition(b"\x1b[m")[0]
    assert said in note
    assert len(note) <= columns


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_gives_the_terminal_back(tmp_path: Path, number: signal.Signals) -> None:
    async with PaneServer(tmp_path / "s") as guest:
        pid, terminal = pty.fork()
        if pid == 0:
            argv = [sys.executable, "-P", str(PROGRAM), str(tmp_path / "s"), "ctrl+g"]
            os.execv(sys.executable, argv)
        before = termios.tcgetattr(terminal)
        await guest.put(b"\x1b[?1004h\x1b]11;red\x07ready")
        await guest.until(lambda: guest.acked > 0)
        await asyncio.to_thread(os.write, terminal, b"x")
        await guest.until_typed(b"x")
        os.kill(pid, number)
        async with asyncio.timeout(20):
            written = b""
            while b"\x1b[?1004l" not in written:
                written += await asyncio.to_thread(_read, terminal)
            _, status = await asyncio.to_thread(os.waitpid, pid, 0)
        after = termios.tcgetattr(terminal)
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0
    assert after[:4] == before[:4]
    assert b"\x1b]111\x1b\\" in written
    assert b"Traceback" not in written


async def test_a_terminal_that_is_closed_is_no_error(tmp_path: Path) -> None:
    said = tmp_path / "said"
    async with PaneServer(tmp_path / "s") as guest:
        pid, terminal = pty.fork()
        if pid == 0:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)
            argv = [sys.executable, "-P", str(PROGRAM), str(tmp_path / "s"), "ctrl+g"]
            os.execv(sys.executable, argv)
        await guest.put(b"ready")
        await guest.until(lambda: guest.acked > 0)
        await asyncio.to_thread(os.write, terminal, b"x")
        await guest.until_typed(b"x")
        os.close(terminal)
        async with asyncio.timeout(20):
            _, status = await asyncio.to_thread(os.waitpid, pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert said.read_text() == ""


async def test_margins_of_another_size_are_forgotten(tmp_path: Path) -> None:
    """An editor's margins were those of a smaller pane; here they would keep lines from moving."""
    async with PaneServer(tmp_path / "s") as guest:
        pid, terminal = pty.fork()
        if pid == 0:
            argv = [sys.executable, "-P", str(PROGRAM), str(tmp_path / "s"), "ctrl+g"]
            os.execv(sys.executable, argv)
        await guest.put(b"\x1b[1;18r")
        await guest.until(lambda: guest.acked > 0)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 30, 100, 0, 0))
        await guest.until(lambda: guest.sizes[-1:] == [(100, 30)])
        await guest.put(b"ready")
        async with asyncio.timeout(20):
            written = b""
            while b"ready" not in written:
                written += await asyncio.to_thread(_read, terminal)
            margins, _, after = written.partition(b"\x1b[1;18r")
            await asyncio.to_thread(os.write, terminal, b"\x07d")
            left = await read_to_the_end(terminal)
        await asyncio.to_thread(os.waitpid, pid, 0)
        os.close(terminal)
    assert margins.endswith(b"\x1b7\x1b[r\x1b8")
    assert b"\x1b7\x1b[r\x1b8" in after
    assert b"\x1b7\x1b[r\x1b8" in left


@pytest.mark.parametrize(
    ("output", "switches"),
    [
        (b"", 0),
        (b"\x1b[?1049hedit\x1b[?1049l", 0),
        (b"\x1b[?1049hedit\x1bc", 0),
        (b"\x1b[?1;1049hedit", 1),
        (b"\x1b[?47hedit", 1),
    ],
)
async def test_only_the_alternate_screen_is_left(
    tmp_path: Path, output: bytes, switches: int
) -> None:
    """On the main screen that would put the cursor back where an editor had begun."""
    async with PaneServer(tmp_path / "s") as guest:
        pid, terminal = pty.fork()
        if pid == 0:
            argv = [sys.executable, "-P", str(PROGRAM), str(tmp_path / "s"), "ctrl+g"]
            os.execv(sys.executable, argv)
        await guest.put(output + b"ready")
        async with asyncio.timeout(20):
            written = b""
            while b"ready" not in written:
                written += await asyncio.to_thread(_read, terminal)
            _, _, written = written.partition(b"ready")
            await asyncio.to_thread(os.write, terminal, b"\x07d")
            written += await read_to_the_end(terminal)
        await asyncio.to_thread(os.waitpid, pid, 0)
        os.close(terminal)
    assert written.count(b"\x1b[?1049l") == switches
