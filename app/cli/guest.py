"""Commands that reach into a running guest: exec and proxy."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shlex
import signal
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

import asyncssh

from app.client import fleet
from app.client.session import SessionClient
from app.errors import EXIT_DONE, EXIT_OURS, EXIT_TIMEOUT, AppError, not_running
from app.paths import Paths, check_sockets_private

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator

    from app.cli.output import Output
    from app.protocol import ExecResult

READ_AHEAD: Final = 8
"""Chunks of stdin that wait for the guest."""

KILL_S: Final = 5.0
"""Seconds that a program which ran out of time may take to be dead and to have said its last."""

EXEC_JSON_S: Final = 600.0
"""Bound on a command whose output is collected, unless --timeout-s says otherwise."""


def execute(arguments: argparse.Namespace, output: Output) -> int:
    """Run a command in the guest; its exit status is ours."""
    if not arguments.rest:
        raise AppError("usage", "What shall be run?", "cloche exec ID -- CMD")
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session)
    if info.state != "running":
        raise not_running(info.id, info.state)
    if output.json:
        return asyncio.run(_collected(paths, info.id, arguments, output))
    return asyncio.run(_streamed(paths, info.id, arguments))


async def _collected(
    paths: Paths, session_id: str, arguments: argparse.Namespace, output: Output
) -> int:
    async with await SessionClient.open(paths, session_id) as client:
        done = await client.exec(
            arguments.rest, root=arguments.root, timeout_s=arguments.timeout_s or EXEC_JSON_S
        )
    output.result(_fields(session_id, done))
    return done.exit_code


def _fields(session_id: str, done: ExecResult) -> dict[str, Any]:
    return {
        "session": session_id,
        "exit_code": done.exit_code,
        "timed_out": done.timed_out,
        "stdout": done.stdout.decode(errors="replace"),
        "stderr": done.stderr.decode(errors="replace"),
        "stdout_base64": base64.b64encode(done.stdout).decode(),
        "stderr_base64": base64.b64encode(done.stderr).decode(),
        "stdout_truncated": done.stdout_bytes > len(done.stdout),
        "stderr_truncated": done.stderr_bytes > len(done.stderr),
        "stdout_bytes": done.stdout_bytes,
        "stderr_bytes": done.stderr_bytes,
    }


async def _streamed(paths: Paths, session_id: str, arguments: argparse.Namespace) -> int:
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    async with await SessionClient.open(paths, session_id) as client:
        options: dict[str, Any] = {"env": _environment(arguments.root)}
        if interactive:
            size = os.get_terminal_size()
            term = os.environ.get("TERM", "xterm-256color")
            options |= {"term_type": term, "term_size": (size.columns, size.lines)}
        process = await client.ssh.create_process(
            shlex.join(arguments.rest), encoding=None, **options
        )
        try:
            return await _carry(process, interactive, arguments.timeout_s)
        finally:
            process.close()


def _environment(root: bool) -> dict[str, str]:
    """Return what tells the keeper that the command is a list of words, and whose it is."""
    return {"CLOCHE_ARGV": "1"} | ({"CLOCHE_ROOT": "1"} if root else {})


async def _carry(
    process: asyncssh.SSHClientProcess[bytes], interactive: bool, timeout_s: float | None
) -> int:
    if interactive:
        from app.cli.attach import raw_terminal

        with raw_terminal(), _follow_size(process):
            return await _until_deadline(process, timeout_s)
    return await _until_deadline(process, timeout_s)


@contextlib.contextmanager
def _follow_size(process: asyncssh.SSHClientProcess[bytes]) -> Generator[None]:
    """Give the program's terminal the size of ours whenever that changes."""

    def changed() -> None:
        size = os.get_terminal_size()
        process.change_terminal_size(size.columns, size.lines)

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, changed)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


async def _until_deadline(
    process: asyncssh.SSHClientProcess[bytes], timeout_s: float | None
) -> int:
    """Carry to the program's end; at the deadline its process group is killed first.

    What it had printed until then still arrives.
    """
    carrying = asyncio.create_task(_pump(process))
    try:
        if (await asyncio.wait({carrying}, timeout=timeout_s))[0]:
            return carrying.result()
        process.kill()
        await asyncio.wait({carrying}, timeout=KILL_S)
        return EXIT_TIMEOUT
    finally:
        carrying.cancel()
        await asyncio.gather(carrying, return_exceptions=True)


async def _pump(process: asyncssh.SSHClientProcess[bytes]) -> int:
    feeding = asyncio.create_task(_feed(process))
    try:
        await asyncio.gather(_drain(process.stdout, 1), _drain(process.stderr, 2))
        await process.wait_closed()
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
    if process.exit_status is not None:
        return process.exit_status & 0xFF
    return EXIT_OURS


async def _feed(process: asyncssh.SSHClientProcess[bytes]) -> None:
    chunks: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(READ_AHEAD)
    reader = threading.Thread(
        target=_read_stdin, args=(asyncio.get_running_loop(), chunks, room), daemon=True
    )
    reader.start()
    try:
        while data := await chunks.get():
            process.stdin.write(data)
            await process.stdin.drain()
            room.release()
        process.stdin.write_eof()
    except (BrokenPipeError, asyncssh.Error):
        return  # the program ended without reading all of its input


def _read_stdin(
    loop: asyncio.AbstractEventLoop, chunks: asyncio.Queue[bytes], room: threading.Semaphore
) -> None:
    # in a thread of its own: stdin may be a plain file, which no event loop can wait for, and a
    # read that nobody needs any more must not keep the command from ending
    data = b"-"
    while data:
        room.acquire()
        data = os.read(0, 1 << 15)
        try:
            loop.call_soon_threadsafe(chunks.put_nowait, data)
        except RuntimeError:
            return  # the command has ended


async def _drain(stream: asyncssh.SSHReader[bytes], descriptor: int) -> None:
    while data := await stream.read(1 << 16):
        view = memoryview(data)
        while view:
            view = view[await asyncio.to_thread(os.write, descriptor, view) :]


def proxy(arguments: argparse.Namespace, _: Output) -> int:
    """Carry bytes between stdin, stdout and the session's control.sock."""
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session)
    asyncio.run(_wake(paths, info.id))
    check_sockets_private(paths.sockets(info.id))
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(os.fspath(paths.sockets(info.id) / "control.sock"))
    _copy(connection)
    return EXIT_DONE


async def _wake(paths: Paths, session_id: str) -> None:
    async with await SessionClient.open(paths, session_id):
        return


def _copy(connection: socket.socket) -> None:
    import select

    sources = {0: connection.fileno(), connection.fileno(): 1}
    while sources:
        ready, _, _ = select.select(list(sources), [], [])
        for source in ready:
            data = os.read(source, 1 << 16)
            if not data and source != 0:
                return
            if not data:
                del sources[source]
                connection.shutdown(socket.SHUT_WR)
                continue
            view = memoryview(data)
            while view:
                view = view[os.write(sources[source], view) :]
