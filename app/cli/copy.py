"""`cloche cp`: files and folders between this host and a session's guest."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from app.client import fleet
from app.client.copying import CopyReport, copy_into, copy_out
from app.client.session import SessionClient
from app.errors import EXIT_DONE, EXIT_FAILED, AppError, app_error, naming, not_running
from app.paths import Paths
from app.wording import counted
from vm.errors import VMError

if TYPE_CHECKING:
    import argparse

    from app.cli.output import Output

TELL_S: Final = 0.2
"""How often the progress line changes."""


def copy(arguments: argparse.Namespace, output: Output) -> int:
    """Copy SRC to DST, one of which is `ID:path`; status 1 when something was left out."""
    sides = [guest_side(text) for text in (arguments.source, arguments.target)]
    if (sides[0] is None) == (sides[1] is None):
        text = "Exactly one of SRC and DST is in a guest."
        raise AppError("usage", text, "cloche cp ID:PATH DST, or: cloche cp SRC ID:PATH")
    session = (sides[0] or sides[1] or ("", b""))[0]
    paths = Paths.from_environment()
    info = fleet.find_session(paths, session, sandbox=True)
    if info.state != "running":
        raise not_running(info.id, info.state, info.message, info.hint)
    try:
        report = asyncio.run(_copy(paths, info.id, arguments, sides))
    except (AppError, VMError, OSError) as error:
        raise _named(error, info.id, arguments) from error
    for skipped in report.skipped:
        output.note(f"left out: {skipped.path}: {skipped.reason}")
    output.result(_fields(info.id, report), lambda: output.line(_sentence(report)))
    return EXIT_FAILED if report.skipped_count else EXIT_DONE


def _named(error: Exception, session: str, arguments: argparse.Namespace) -> Exception:
    """Return the error with this session and these paths in its hint."""
    known = app_error(error)
    if known is None:
        return error
    words = shlex.join((arguments.source, arguments.target))
    hint = known.hint.replace("SRC DST", words)
    return naming(AppError(known.code, known.message, hint), session)


def guest_side(text: str) -> tuple[str, bytes] | None:
    """Return session and path of `ID:path`; a path of the host has a slash before any colon."""
    session, colon, path = text.partition(":")
    if not colon or not session or "/" in session:
        return None
    return session, os.fsencode(path or ".")


async def _copy(
    paths: Paths,
    session: str,
    arguments: argparse.Namespace,
    sides: list[tuple[str, bytes] | None],
) -> CopyReport:
    source, target = sides
    progress = _ProgressLine()
    async with await SessionClient.open(paths, session) as client:
        try:
            if source is not None:
                return await copy_out(
                    client,
                    source[1],
                    Path(arguments.target),
                    root=arguments.root,
                    progress=progress.tell,
                    folder_meant=arguments.target.endswith("/"),
                )
            assert target is not None
            from_ = Path(arguments.source)
            return await copy_into(
                client, from_, target[1], root=arguments.root, progress=progress.tell
            )
        finally:
            progress.end()


class _ProgressLine:
    """One line on a terminal's stderr that is written over; nothing anywhere else."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._began = self._told = time.monotonic()
        self._any = False

    def tell(self, report: CopyReport) -> None:
        now = time.monotonic()
        if not self._shown or now - self._told < TELL_S:
            return
        self._told = now
        self._any = True
        speed = report.size / max(now - self._began, 0.001)
        text = f"{_size(report.size)}  {counted(report.files, 'file')}  {_size(speed)}/s"
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()

    def end(self) -> None:
        if self._any:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.2f} GB"


def _fields(session: str, report: CopyReport) -> dict[str, object]:
    return {
        "session": session,
        "to": str(report.target),
        "files": report.files,
        "folders": report.folders,
        "bytes": report.size,
        "skipped": msgspec.to_builtins(report.skipped),
        "skipped_count": report.skipped_count,
    }


def _sentence(report: CopyReport) -> str:
    left = f", {report.skipped_count} left out" if report.skipped_count else ""
    return f"{report.target}: {counted(report.files, 'file')}, {_size(report.size)}{left}"
