"""Commands that write into the workspace: merge, and undo of a whole merge."""

from __future__ import annotations

import asyncio
import os
import shlex
from typing import TYPE_CHECKING, Any, Final

import msgspec

from app.cli.review import shown
from app.client import fleet
from app.client.session import SessionClient
from app.errors import EXIT_DECISION, EXIT_DONE, AppError
from app.paths import Paths
from app.protocol import Changes, FileChange, MergeReport, MergeRequest, UndoReport
from app.protocol_review import Resolve
from app.wire_text import to_text
from snapshot.undo import UNDO_SUFFIX
from snapshot.writeback_plan import ALREADY, KEPT

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from app.cli.output import Output

_NAMED: Final = 8
"""Most paths that one proposed command names."""


def merge(arguments: argparse.Namespace, output: Output) -> int:
    """Write what was accepted (here or on the review screen) into the workspace."""
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session)
    request = MergeRequest(
        accept=_texts(arguments.accept),
        reject=_texts(arguments.reject),
        hunks=tuple(arguments.hunk),
        accept_safe=arguments.accept_safe,
        dry_run=arguments.dry_run,
        resolve=tuple(map(resolve_of, arguments.resolve)),
    )
    found, report = asyncio.run(_merge(paths, info.id, request))
    undecided = _undecided(request, report)
    fields: dict[str, Any] = msgspec.to_builtins(report)
    output.result(
        {"session": info.id, **fields}, lambda: _print_merge(output, found, request, report)
    )
    left_out = any(skipped.reason not in (ALREADY, KEPT) for skipped in report.skipped)
    waits = report.conflicts or report.held or left_out or undecided
    return EXIT_DECISION if waits else EXIT_DONE


def resolve_of(text: str) -> Resolve:
    """Return what `PATH=SIDE` means. Raises AppError `usage`."""
    path, _, side = text.rpartition("=")
    for choice in ("base", "yours", "agent", "both", "both-reversed"):
        if path and side == choice:
            return Resolve(_texts([path])[0].removeprefix("./"), choice)
    sides = "base, yours, agent, both or both-reversed"
    raise AppError("usage", f"'{text}' is not PATH=SIDE.", f"SIDE is one of {sides}.")


def _texts(arguments: list[str]) -> tuple[str, ...]:
    return tuple(to_text(os.fsencode(text)) for text in arguments)


async def _merge(
    paths: Paths, session_id: str, request: MergeRequest
) -> tuple[Changes, MergeReport]:
    async with await SessionClient.open(paths, session_id) as client:
        found = await client.changes(refresh=True)
        return found, await client.merge(request)


def _undecided(request: MergeRequest, report: MergeReport) -> bool:
    asked = request.accept or request.hunks or request.accept_safe or request.reject
    return not asked and bool(report.open)


def _left_by_safe(found: Changes, report: MergeReport) -> list[FileChange]:
    """Return the files that "accept safe" leaves to the user: undecided, and held by a risk."""
    left_out = (one.path for one in (*report.skipped, *report.held))
    done = {*report.written, *report.conflicts, *left_out}
    return [
        file
        for file in found.files
        if file.tier == "held" and file.decision in ("open", "mixed") and file.path not in done
    ]


def _warned_by_safe(found: Changes, report: MergeReport) -> list[FileChange]:
    """Return the files that "accept safe" took though builds or CI run them."""
    written = set(report.written)
    return [file for file in found.files if file.tier == "warned" and file.path in written]


def _print_merge(
    output: Output, found: Changes, request: MergeRequest, report: MergeReport
) -> None:
    verbs = ("would write", "would delete") if report.dry_run else ("wrote", "deleted")
    for path in report.wrote:
        output.line(f"{verbs[0]} {shown(path)}")
    for path in report.deleted:
        output.line(f"{verbs[1]} {shown(path)}")
    for skipped in report.skipped:
        output.line(f"left out {shown(skipped.path)}: {skipped.reason}")
    for file in _warned_by_safe(found, report) if request.accept_safe else ():
        output.line(f"warning {shown(file.path)}: {file.risk}")
    for held in report.held:
        output.line(f"held back {shown(held.path)}: {held.reason}")
    for path in report.kept:
        output.line(f"left rejected {shown(path)}: what you rejected of it stays out")
    for file in _left_by_safe(found, report) if request.accept_safe else ():
        output.line(f"left open {shown(file.path)}: {file.risk}")
    for conflict in report.reasons:
        output.line(f"conflict {shown(conflict.path)}: {conflict.reason}")
    for notice in report.notices:
        output.line(f"note {shown(notice)}")
    _print_next(output, found, report)


def _print_next(output: Output, found: Changes, report: MergeReport) -> None:
    """Say what can be done about what was not written, and how it is taken back."""
    if report.conflicts:
        output.line(f"Choose: cloche merge {found.session} --resolve PATH=yours|agent|both")
    left = [*(one.path for one in report.held), *report.kept]
    if left:
        output.line(f"No pattern accepts these. By name: {by_name(found.session, left)}")
    if report.open:
        noun = "hunk waits" if report.open == 1 else "hunks wait"
        output.line(f"{report.open} {noun}: cloche merge {found.session} --accept PATTERN")
    if report.merge:
        output.line(f"Take it back: cloche undo {report.merge}")


def by_name(session: str, paths: Sequence[str]) -> str:
    """Return the command that accepts these files; those that it cannot show come as PATH."""
    words = [shlex.quote(path) if shown(path) == path else "PATH" for path in paths]
    few = list(dict.fromkeys(words))[:_NAMED]
    return " ".join(["cloche merge", session, *(f"--accept {word}" for word in few)])


def undo(arguments: argparse.Namespace, output: Output) -> int:
    """Take a whole merge back."""
    paths = Paths.from_environment()
    session, merge_id = find_merge(paths, arguments.merge)
    report = asyncio.run(_undo(paths, session, merge_id))
    fields: dict[str, Any] = msgspec.to_builtins(report)
    output.result({"session": session, **fields}, lambda: _print_undo(output, report))
    return EXIT_DECISION if report.conflicts else EXIT_DONE


def find_merge(paths: Paths, text: str) -> tuple[str, str]:
    """Return session and id of the merge that `text` means, a unique prefix being enough."""
    found = [
        (info.id, name)
        for info in fleet.list_sessions(paths)
        for name in _merge_names(paths, info.id)
        if text and name.startswith(text)
    ]
    exact = [pair for pair in found if pair[1] == text]
    if len(exact or found) != 1:
        raise _which(text, found, paths)
    return (exact or found)[0]


def _which(text: str, found: list[tuple[str, str]], paths: Paths) -> AppError:
    """Say that `text` means no merge, or several; ids begin with their time, so one is newest."""
    if found:
        ids = ", ".join(sorted(name for _, name in found if not name.endswith(UNDO_SUFFIX))[-4:])
        return AppError("not-found", f"{len(found)} merges begin with '{text}'.", f"Such as: {ids}")
    sessions = fleet.list_sessions(paths)
    names = [name for info in sessions for name in _merge_names(paths, info.id)]
    newest = max((name for name in names if not name.endswith(UNDO_SUFFIX)), default="")
    hint = f"The newest is taken back by: cloche undo {newest}" if newest else "See: cloche ps"
    return AppError("not-found", f"There is no merge '{text}'.", hint)


def _merge_names(paths: Paths, session_id: str) -> list[str]:
    try:
        return sorted(os.listdir(paths.session(session_id) / "merges"))
    except FileNotFoundError:
        return []


async def _undo(paths: Paths, session_id: str, merge_id: str) -> UndoReport:
    async with await SessionClient.open(paths, session_id) as client:
        return await client.undo(merge_id)


def _print_undo(output: Output, report: UndoReport) -> None:
    for path in report.wrote:
        output.line(f"restored {shown(path)}")
    for path in report.deleted:
        output.line(f"deleted {shown(path)}")
    if not report.restored and not report.conflicts:
        output.line("There was nothing to restore: it is taken back already.")
    for path in report.conflicts:
        output.line(f"conflict {shown(path)}: it was changed after the merge")
    for notice in report.notices:
        output.line(f"note {shown(notice)}")
