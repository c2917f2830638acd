"""Commands that reach into a running guest: exec and proxy."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import signal
import socket
from typing import TYPE_CHECKING, Any, Final

from app.cli.output import Output
from app.client import fleet, programs
from app.client.session import SessionClient
from app.errors import EXIT_DONE, EXIT_TIMEOUT, AppError, not_running
from app.paths import Paths, check_sockets_private
from app.programs import Program, check_words

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator

    from app.cli.terminal_writer import TerminalWriter
    from app.client.programs import Ended, Running
    from app.protocol import ExecResult

EXEC_JSON_S: Final = 600.0
"""Bound on a command whose output is collected, unless --timeout-s says otherwise."""

MAX_EXEC_S: Final = 7 * 86400.0
MAX_JSON_S: Final = 3600.0
"""Longest that the keeper waits for a command whose output it collects."""


def execute(arguments: argparse.Namespace, output: Output) -> int:
    """Run a command in the guest; its exit status is ours."""
    if not arguments.rest:
        raise AppError("usage", "What shall be run?", "cloche exec ID -- CMD")
    check_words(arguments.rest)
    limit = arguments.timeout_s
    if limit is not None and not 0 < limit <= MAX_EXEC_S:  # which no NaN is
        raise AppError("usage", f"{limit:g} is no time to run for.", "--timeout-s 60")
    if output.json and limit is not None and limit > MAX_JSON_S:
        text = f"With --json a command runs for at most {MAX_JSON_S:g} s."
        raise AppError("usage", text, f"--timeout-s {MAX_JSON_S:g}, or leave out --json")
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session, sandbox=True)
    if info.state != "running":
        raise not_running(info.id, info.state, info.message, info.hint)
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
    program = Program(tuple(arguments.rest), root=arguments.root)
    interactive = os.isatty(0) and os.isatty(1)
    async with await SessionClient.open(paths, session_id) as client:
        running = await programs.start(client, program, _terminal() if interactive else None)
        try:
            ended = await _carry(running, interactive, arguments.timeout_s)
        finally:
            running.close()
    if ended.timed_out:
        Output.note(
            f"cloche: The command had not ended after {arguments.timeout_s:g} s and was killed "
            "(--timeout-s)."
        )
    return EXIT_TIMEOUT if ended.timed_out else ended.status


def _terminal() -> dict[str, Any]:
    size = os.get_terminal_size()
    term = os.environ.get("TERM", "xterm-256color")
    return {"term_type": term, "term_size": (size.columns, size.lines)}


async def _carry(running: Running, interactive: bool, timeout_s: float | None) -> Ended:
    """Carry our streams; a terminal gets nothing that would act on it, and is given back."""
    terminals = our_terminals()
    with contextlib.ExitStack() as stack:
        if interactive:
            from app.cli.attach import raw_terminal

            stack.enter_context(raw_terminal(main_screen=b""))
            stack.enter_context(_follow_size(running))
        stack.callback(_leave, terminals)
        return await programs.carry(
            running,
            stdin=0,
            out=terminals[1].write if 1 in terminals else programs.writer(1),
            err=terminals[2].write if 2 in terminals else programs.writer(2),
            timeout_s=timeout_s,
        )


def our_terminals() -> dict[int, TerminalWriter]:
    """Return what writes to each of our outputs that is a terminal."""
    found = [number for number in (1, 2) if os.isatty(number)]
    if not found:
        return {}  # the filter need not be loaded, which takes its time
    from app.cli.terminal_writer import TerminalWriter

    return {number: TerminalWriter(number) for number in found}


def _leave(terminals: dict[int, TerminalWriter]) -> None:
    for number, terminal in terminals.items():
        # one that was closed meanwhile needs nothing back
        with contextlib.suppress(OSError):
            os.write(number, terminal.undo)


@contextlib.contextmanager
def _follow_size(running: Running) -> Generator[None]:
    """Give the program's terminal the size of ours whenever that changes."""

    def changed() -> None:
        size = os.get_terminal_size()
        running.change_terminal_size(size.columns, size.lines)

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, changed)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


def proxy(arguments: argparse.Namespace, _: Output) -> int:
    """Carry bytes between stdin, stdout and the session's control.sock."""
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session, sandbox=True)
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
