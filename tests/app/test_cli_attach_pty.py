"""Leaving an attached terminal, whatever keyboard its guest has switched on."""

from __future__ import annotations

import asyncio
import os
import pty
import sys
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
