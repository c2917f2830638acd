"""`cloche sandbox`: one command in a machine of its own, of which nothing is left."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from app.cli.guest import our_terminals
from app.cli.network_flags import egress_report, note_refused
from app.cli.sandbox_flags import request_of
from app.client.programs import writer
from app.client.sandboxes import logs_folder
from app.errors import EXIT_DONE
from app.paths import Paths
from app.services.sandbox import Streams, run_sandbox
from app.services.sandbox_logs import Captured

if TYPE_CHECKING:
    import argparse
    from collections.abc import Coroutine, Generator

    from app.cli.output import Output
    from app.services.sandbox import SandboxReport, SandboxRequest

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends a sandbox from outside. Once more, and its keeper ends it without us."""

CLEAR: Final = b"\r\x1b[K"
T = TypeVar("T")


def sandbox(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command; its exit status is ours."""
    request = request_of(arguments)
    try:
        work = _reported(request, output) if output.json else _streamed(request, output)
        return asyncio.run(_interruptible(work))
    finally:
        if request.stdin:
            os.close(request.stdin)


async def _interruptible(work: Coroutine[object, object, int]) -> int:
    """Do it until a signal comes, or nobody reads what is said: then the machine ends first."""
    task = asyncio.ensure_future(work)
    with _stopped(task) as reasons:
        try:
            return await task
        except asyncio.CancelledError:
            if not reasons:
                raise
            if reasons[0] == signal.SIGPIPE:
                raise BrokenPipeError from None
            return 128 + reasons[0]


@contextmanager
def _stopped(task: asyncio.Future[int]) -> Generator[list[int]]:
    """Cancel a task by signals, and when nobody reads what is said; yield the numbers that did."""
    loop = asyncio.get_running_loop()
    reasons: list[int] = []

    def stop(reason: int) -> None:
        reasons.append(reason)
        task.cancel()

    def unread() -> None:
        loop.remove_reader(1)
        stop(signal.SIGPIPE)

    # what whoever started us made us ignore, as nohup does, we go on to ignore
    for number in (one for one in SIGNALS if signal.getsignal(one) != signal.SIG_IGN):
        loop.add_signal_handler(number, stop, number)
    watched = _is_pipe(1)
    if watched:  # the end of its reader is all that the writing end of a pipe ever tells
        loop.add_reader(1, unread)
    try:
        yield reasons
    finally:
        if watched:
            loop.remove_reader(1)


def _is_pipe(descriptor: int) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        return False


async def _streamed(request: SandboxRequest, output: Output) -> int:
    """Show both streams as they come."""
    terminals = our_terminals()
    waiting = _Waiting()
    try:
        report = await run_sandbox(
            Paths.from_environment(),
            request,
            lambda _: Streams(
                terminals[1].write if 1 in terminals else writer(1),
                terminals[2].write if 2 in terminals else writer(2),
                waiting.end,
            ),
        )
    finally:
        waiting.end()
        for number, terminal in terminals.items():
            if terminal.undo:
                os.write(number, terminal.undo)
    _tell(request, report, output)
    return report.status


class _Waiting:
    """A line on a terminal's stderr until the command begins; nothing anywhere else."""

    def __init__(self) -> None:
        self._shown = os.isatty(2)
        if self._shown:
            sys.stderr.write("starting a machine ...")
            sys.stderr.flush()

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            self._shown = False
            os.write(2, CLEAR)


def _tell(request: SandboxRequest, report: SandboxReport, output: Output) -> None:
    """Say on stderr what the exit status alone does not."""
    note_refused(output, report.refused)
    if report.timed_out:
        output.note(f"cloche: {_out_of_time(request, report)}")
    for failed in report.copies_failed:
        output.note(f"cloche: {failed.guest} was not copied to {failed.host}: {failed.message}")
        if failed.hint:
            output.note(f"  {failed.hint}")


def _out_of_time(request: SandboxRequest, report: SandboxReport) -> str:
    seconds = f"{request.timeout_s:g} s"
    if report.started:
        return f"The command had not ended after {seconds} and was killed (--timeout-s)."
    sentence = f"The machine had not started after {seconds}; the command did not run"
    return f"{sentence} (--timeout-s). {report.message}".rstrip()


async def _reported(request: SandboxRequest, output: Output) -> int:
    """Print one object at the end."""
    paths = Paths.from_environment()
    kept: list[Captured] = []

    def streams(sandbox_id: str) -> Streams:
        folder = logs_folder(paths, sandbox_id)
        kept.extend(Captured(folder / f"{name}.log") for name in ("stdout", "stderr"))
        return Streams(kept[0].write, kept[1].write)

    try:
        report = await run_sandbox(paths, request, streams)
    except BaseException:
        for one in kept:
            one.discard()
        raise
    for one in kept:
        one.close()
    output.result(_fields(report, *kept))
    return report.status or EXIT_DONE


def _fields(report: SandboxReport, out: Captured, err: Captured) -> dict[str, Any]:
    """Return the report by the names that programs know; `ok` is false where a copy failed."""
    fields = asdict(report)
    del fields["refused"]
    failed = msgspec.to_builtins(report.copies_failed)
    fields |= {
        "stdout": out.head,
        "stderr": err.head,
        "stdout_truncated": out.truncated,
        "stderr_truncated": err.truncated,
        "stdout_bytes": out.total,
        "stderr_bytes": err.total,
        "stdout_log_path": out.log,
        "stderr_log_path": err.log,
        "log_problems": [one.problem for one in (out, err) if one.problem],
        "copied": msgspec.to_builtins(report.copied),
        "copies_failed": failed,
        "notices": list(report.notices),
        "egress": egress_report(report.refused),
    }
    if failed:
        first = {name: failed[0][name] for name in ("code", "message", "hint")}
        fields |= {"ok": False, "error": first}
    return fields
