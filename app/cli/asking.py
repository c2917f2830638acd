"""`cloche review`: how far a review is, its patch, and asking the agent for changes."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from app.cli.patch_output import put_patch, refuse_terminal
from app.cli.review import shown
from app.client import fleet
from app.client.session import SessionClient
from app.errors import EXIT_DECISION, EXIT_DONE, AppError, not_running
from app.paths import Paths
from app.protocol_review import MAX_PATCH
from app.services.merge_facts import open_units, units_in
from app.services.patches import accepted_patch
from app.wording import counted
from snapshot.safe_text import safe_name

if TYPE_CHECKING:
    import argparse

    from app.cli.output import Output
    from app.protocol import Changes
    from app.protocol_review import ChangeRequest, Comment, Conflict, PatchReport


def review(arguments: argparse.Namespace, output: Output) -> int:
    """Say how far the review is, export it, or send what is wrong to the agent."""
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session)
    if arguments.patch:
        return _import(paths, info.id, arguments.patch, output)
    if arguments.export == "patch":
        return _patch(paths, info.id, output)
    if arguments.send and info.state != "running":
        raise not_running(info.id, info.state, info.message, info.hint)
    if arguments.export == "prompt" or arguments.send:
        return _prompt(paths, info.id, output, send=arguments.send)
    return _state(paths, info.id, output)


def _patch(paths: Paths, session: str, output: Output) -> int:
    """Write what is accepted as a patch. Raises AppError `usage`."""
    refuse_terminal(output, f"cloche review {session} --export patch > review.patch")
    data, left_out = asyncio.run(_fetch_patch(paths, session))
    return put_patch(output, session, data, left_out)


async def _fetch_patch(paths: Paths, session: str) -> tuple[bytes, list[str]]:
    async with await SessionClient.open(paths, session) as client:
        return await accepted_patch(client, await client.changes())


def _import(paths: Paths, session: str, name: str, output: Output) -> int:
    """Decide as an edited patch says."""
    data = _read_patch(name, session)
    report = asyncio.run(_send_patch(paths, session, data))
    value = {"session": session, **msgspec.to_builtins(report)}
    where = f"{counted(report.accepted, 'hunk')} accepted in {counted(len(report.paths), 'file')}"
    text = f"{where}, {report.edited} edited"
    output.result(value, lambda: output.line(f"{text}. Merge: cloche merge {session}"))
    return EXIT_DONE


def _read_patch(name: str, session: str) -> bytes:
    """Return the patch in a file, or with `-` on stdin. Raises AppError `not-found`."""
    if name == "-":
        return sys.stdin.buffer.read(MAX_PATCH + 1)
    try:
        with open(name, "rb") as file:
            return file.read(MAX_PATCH + 1)
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        raise AppError(
            "not-found",
            f"The patch {safe_name(name).text} cannot be read: {reason}.",
            f"Make one: cloche review {session} --export patch > review.patch",
        ) from error


async def _send_patch(paths: Paths, session: str, data: bytes) -> PatchReport:
    if len(data) > MAX_PATCH:
        raise AppError("usage", f"A patch has at most {MAX_PATCH >> 10} KiB.")
    async with await SessionClient.open(paths, session) as client:
        await client.changes(refresh=True)
        return await client.import_patch(data)


def _prompt(paths: Paths, session: str, output: Output, *, send: bool) -> int:
    """Print the request for changes, and with `send` type it into the agent's terminal."""
    request = asyncio.run(_request(paths, session, send=send))
    if not request.text:
        hint = f"Reject hunks or comment: cloche comment {session} PATH:LINE TEXT"
        raise AppError("nothing-to-ask", "There is nothing new to ask the agent for.", hint)
    value = {"session": session, "sent": send, **msgspec.to_builtins(request)}
    output.result(value, lambda: output.block(request.text))
    if request.left_out:
        output.note(f"{request.left_out} more found no room and are for the next request")
    if send:
        output.note(f"Sent. Watch: cloche attach {session} --read-only")
    return EXIT_DONE


async def _request(paths: Paths, session: str, *, send: bool) -> ChangeRequest:
    async with await SessionClient.open(paths, session) as client:
        request = await client.change_request()
        if send and request.text:
            await client.request_changes(request.text, request.items)
        return request


def _state(paths: Paths, session: str, output: Output) -> int:
    """Say what waits for a decision; the exit status says whether something does."""
    changes, comments, conflicts = asyncio.run(_fetch_state(paths, session))
    counts = {
        "files": len(changes.files),
        **{name: units_in(changes, name) for name in ("open", "mixed", "accepted", "rejected")},
        "waiting": open_units(changes),
        "merged": sum(hunk.merged for file in changes.files for hunk in file.hunks),
        "comments": len(comments),
        "outdated": sum(one.outdated for one in comments),
        "conflicts": sum(not one.choice for one in conflicts),
    }
    value: dict[str, Any] = {"session": session, "generation": changes.generation, **counts}
    output.result(value, lambda: _print_state(output, counts, conflicts))
    waiting = counts["waiting"] or counts["conflicts"]
    return EXIT_DECISION if waiting else EXIT_DONE


async def _fetch_state(paths: Paths, session: str) -> tuple[Changes, list[Comment], list[Conflict]]:
    async with await SessionClient.open(paths, session) as client:
        changes = await client.changes(refresh=True)
        return changes, await client.comments(), await client.conflicts()


def _print_state(output: Output, counts: dict[str, int], conflicts: list[Conflict]) -> None:
    by_lines = f"{counts['mixed']} decided by lines, " if counts["mixed"] else ""
    output.line(
        f"{counted(counts['files'], 'file')}: {counted(counts['waiting'], 'hunk')} open, "
        f"{counts['accepted']} accepted, {by_lines}{counts['rejected']} rejected, "
        f"{counts['merged']} merged; {counted(counts['comments'], 'comment')}"
        f"{', ' + str(counts['outdated']) + ' outdated' if counts['outdated'] else ''}"
    )
    for one in conflicts:
        if not one.choice:
            line = f":{one.line}" if one.line else ""
            output.line(f"conflict {shown(one.path)}{line}: {one.reason}")
