"""The way to the terminal that PID 1 holds, against guests that speak it well or badly."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import TYPE_CHECKING

import pytest

from tests.vm.machine_ssh_fakes import connected
from vm.errors import GuestProtocol, LinkLost, VMError
from vm.machine.held_terminal import (
    AHEAD,
    RECORDED_STEP,
    RING,
    NoAgent,
    OldImage,
    Terminal,
    attach,
    end,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine
    from pathlib import Path

    import asyncssh

    Process = asyncssh.SSHServerProcess[bytes]
    Program = Callable[[Process], Coroutine[None, None, None]]

RUN = 77


async def read_all(terminal: Terminal) -> None:
    while await terminal.read():
        continue


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("<I", 1 + len(payload)) + kind + payload


def begins(run: int = RUN, begun: int = 0, waiting: int = 0) -> bytes:
    return frame(b"B", struct.pack("<QQI", run, begun, waiting))


def number(kind: bytes, value: int) -> bytes:
    return frame(kind, struct.pack("<I", value))


def says(data: bytes, *, stays: bool = True) -> Program:
    async def program(process: Process) -> None:
        process.stdout.write(data)
        if stays:
            await process.stdin.read()
        process.exit(0)

    return program


@contextlib.asynccontextmanager
async def attached(folder: Path, program: Program, since: int = 0) -> AsyncGenerator[Terminal]:
    async with connected(folder, program) as connection:
        terminal = await attach(connection, RUN, since, 80, 24)
        try:
            yield terminal
        finally:
            await end(terminal, 5.0)


class Guest:
    """A guest's end that keeps what it is told."""

    def __init__(self, first: bytes = b"") -> None:
        self.command = ""
        self.heard: list[tuple[bytes, bytes]] = []
        self.news = asyncio.Event()
        self._first = begins() + first
        self.process: Process | None = None

    async def program(self, process: Process) -> None:
        self.command, self.process = process.command or "", process
        process.stdout.write(self._first)
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                (length,) = struct.unpack("<I", await process.stdin.readexactly(4))
                body = await process.stdin.readexactly(length)
                self.heard.append((body[:1], body[1:]))
                self.news.set()
        process.exit(0)

    def say(self, data: bytes) -> None:
        assert self.process is not None
        self.process.stdout.write(data)

    async def until(self, count: int) -> None:
        async with asyncio.timeout(30):
            while len(self.heard) < count:
                self.news.clear()
                await self.news.wait()


async def test_output_in_order_then_the_end(tmp_path: Path) -> None:
    said = begins(begun=100) + frame(b"O", b"one") + frame(b"O", b"two") + number(b"X", 7)
    async with attached(tmp_path, says(said), 100) as terminal:
        assert (terminal.run, terminal.begun) == (RUN, 100)
        assert [await terminal.read(), await terminal.read()] == [b"one", b"two"]
        assert await terminal.read() == b""
        assert terminal.status == 7
        await terminal.send(b"after the end")
        terminal.resize(1, 1)


async def test_what_is_asked_and_told(tmp_path: Path) -> None:
    guest = Guest()
    async with attached(tmp_path, guest.program, 5) as terminal:
        assert guest.command == "exec /bin/hold attach 77 5 80 24"
        await terminal.send(b"keys")
        terminal.resize(100, 30)
        terminal.recorded(RECORDED_STEP - 1)  # not worth a frame yet
        terminal.recorded(RECORDED_STEP)
        await guest.until(3)
    assert guest.heard == [
        (b"I", b"keys"),
        (b"W", struct.pack("<HH", 100, 30)),
        (b"A", struct.pack("<Q", RECORDED_STEP)),
    ]


async def test_input_waits_for_a_program_that_does_not_read(tmp_path: Path) -> None:
    guest = Guest()
    async with attached(tmp_path, guest.program) as terminal:
        long = asyncio.create_task(terminal.send(b"x" * (AHEAD + 10)))
        await guest.until(AHEAD // 16384)
        short = asyncio.create_task(terminal.send(b"later"))
        await asyncio.sleep(0)
        assert not long.done()
        guest.say(number(b"T", AHEAD))  # nobody reads output, and it is heard nevertheless
        await asyncio.gather(long, short)
        await guest.until(AHEAD // 16384 + 2)
    assert b"".join(payload for _, payload in guest.heard) == b"x" * (AHEAD + 10) + b"later"


async def test_input_that_waits_hears_of_a_lost_link(tmp_path: Path) -> None:
    guest = Guest()
    async with attached(tmp_path, guest.program) as terminal:
        long = asyncio.create_task(terminal.send(b"x" * (AHEAD + 10)))
        await guest.until(AHEAD // 16384)
        assert guest.process is not None
        guest.process.channel.get_connection().abort()
        with pytest.raises(LinkLost):
            await long
        with pytest.raises(LinkLost):
            await terminal.read()


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"", LinkLost),
        (frame(b"O", b"at once"), GuestProtocol),
        (frame(b"B", b"short"), GuestProtocol),
        (struct.pack("<I", 0), GuestProtocol),
        (struct.pack("<I", 1 << 31) + b"B", GuestProtocol),
        (begins(run=RUN + 1), GuestProtocol),
        (begins(begun=1 << 63), GuestProtocol),
    ],
)
async def test_a_guest_that_begins_badly(tmp_path: Path, said: bytes, error: type[VMError]) -> None:
    async with connected(tmp_path, says(said, stays=False)) as connection:
        with pytest.raises(error):
            await attach(connection, RUN, 0, 80, 24)


@pytest.mark.parametrize(
    "said",
    [
        frame(b"O"),
        frame(b"?"),
        frame(b"B"),
        number(b"X", 256),
        frame(b"X", b"1"),
        frame(b"T", b"long size"),
        struct.pack("<I", 40_000) + b"O",
        frame(b"O", b"x" * 32768) * (RING // 32768 + 1),
    ],
)
async def test_a_guest_that_goes_on_badly(tmp_path: Path, said: bytes) -> None:
    async with attached(tmp_path, says(begins() + said)) as terminal:
        with pytest.raises(LinkLost):  # it waits until the fault is seen
            await terminal.send(b"x" * (AHEAD + 1))
        with pytest.raises(GuestProtocol):
            await read_all(terminal)


async def test_a_silent_guest(tmp_path: Path) -> None:
    async with connected(tmp_path, says(b"")) as connection:
        with pytest.raises(LinkLost, match="did not answer"):
            await attach(connection, RUN, 0, 80, 24, timeout_s=0.2)


@pytest.mark.parametrize(("status", "error"), [(3, NoAgent), (127, OldImage), (1, LinkLost)])
async def test_no_terminal(tmp_path: Path, status: int, error: type[VMError]) -> None:
    async def program(process: Process) -> None:
        process.exit(status)

    async with connected(tmp_path, program) as connection:
        with pytest.raises(error):
            await attach(connection, RUN, 0, 80, 24)
