"""The far end of a live pane without a machine: `terminal_remote.py (sshd | keeper) FOLDER ...`.

`sshd FOLDER` is an SSH server on the loopback device that runs the command it is given on a real
PTY; its port is in FOLDER/port. `keeper FOLDER SOCKET COMMAND...` runs COMMAND there over an SSH
connection of its own and serves the keeper's real `pane.sock` for it. Both end with their standard
input.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import shlex
import signal
import struct
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncssh

from app.files import write_atomic
from app.keeper.pane import PaneServer
from app.keeper.terminal_record import TerminalRecord

if TYPE_CHECKING:
    from collections.abc import Coroutine

    Process = asyncssh.SSHServerProcess[bytes]
    Client = asyncssh.SSHClientProcess[bytes]

READ = 65_536
HOST = "127.0.0.1"


class Open(asyncssh.SSHServer):
    """Lets everybody in: it listens on the loopback device, for a minute, and knows no secret."""

    def begin_auth(self, username: str) -> bool:
        return False


def host_key() -> asyncssh.SSHKey:
    """Return a key for one run."""
    return asyncssh.generate_private_key("ssh-ed25519")  # pyright: ignore[reportUnknownMemberType]


def _resize(descriptor: int, columns: int, rows: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


async def _readable(descriptor: int) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


async def run_program(process: Process) -> None:
    """Run what a client asked for on a PTY."""
    pid, descriptor = pty.fork()
    if pid == 0:
        with contextlib.suppress(OSError):
            os.execvpe("sh", ["sh", "-c", f"exec {process.command}"], {"PATH": os.environ["PATH"]})
        os._exit(127)
    os.set_blocking(descriptor, False)
    _resize(descriptor, *process.term_size[:2])
    typing = asyncio.create_task(type_in(process, descriptor))
    try:
        while True:
            await _readable(descriptor)
            data = os.read(descriptor, READ)
            process.stdout.write(data)
            await process.stdout.drain()
    except (OSError, asyncssh.Error):
        pass  # the program ended, or the client went
    finally:
        typing.cancel()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)  # noqa: ASYNC222 - it was killed
        os.close(descriptor)
        process.exit(0)


async def type_in(process: Process, descriptor: int) -> None:
    """Give the program what the client types."""
    while True:
        try:
            data = await process.stdin.read(READ)
        except asyncssh.TerminalSizeChanged as change:
            _resize(descriptor, change.width, change.height)
            continue
        if not data:
            return
        os.write(descriptor, data)


async def serve(folder: Path) -> None:
    """Be the SSH server."""
    server = await asyncssh.listen(
        HOST,
        0,
        server_factory=Open,
        server_host_keys=[host_key()],
        process_factory=run_program,
        line_editor=False,
        encoding=None,
    )
    write_atomic(folder / "port", str(server.get_port()).encode())
    await asyncio.Event().wait()


class Keyboard:
    """The agent's terminal at the end of an SSH channel; see `app.keeper.agent_terminal`."""

    program = 1

    def __init__(self, record: TerminalRecord, process: Client) -> None:
        self._record, self._process = record, process

    async def send(self, data: bytes) -> None:
        self._process.stdin.write(data)
        await self._process.stdin.drain()

    def resize(self, columns: int, rows: int) -> None:
        if (columns, rows) != self._record.size:
            self._record.resize(columns, rows)
            self._process.change_terminal_size(columns, rows)

    def repaint(self) -> None:
        columns, rows = self._record.size
        self._process.change_terminal_size(columns, max(1, rows - 1))
        self._process.change_terminal_size(columns, rows)


async def keep(folder: Path, socket: Path, command: list[str]) -> None:
    """Be a keeper, as far as the terminal goes."""
    port = int((folder / "port").read_bytes())
    connection = await asyncssh.connect(HOST, port, known_hosts=None, config=None, username="x")
    process = await connection.create_process(
        shlex.join(command), encoding=None, term_type="xterm-256color", term_size=(80, 24)
    )
    storage = Path(f"{socket}.d")
    storage.mkdir()  # noqa: ASYNC240 - nothing else runs yet
    record = TerminalRecord(storage, 80, 24)
    server = PaneServer(socket, record, Keyboard(record, process))
    server.start()
    while data := await process.stdout.read(READ):
        record.append(data)
        await server.changed()
        await server.room()


async def until_left(work: Coroutine[object, object, None]) -> None:
    """Do `work` until standard input ends."""
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, over.set)
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(over.wait())]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    os._exit(0)  # nothing here is worth an orderly end, and the programs hang up with us


if __name__ == "__main__":
    role, where, *rest = sys.argv[1:]
    if role == "sshd":
        asyncio.run(until_left(serve(Path(where))))
    else:
        asyncio.run(until_left(keep(Path(where), Path(rest[0]), rest[1:])))
