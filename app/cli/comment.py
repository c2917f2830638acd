"""`cloche comment`: comments on what an agent changed, from the shell."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

import msgspec

from app.cli.review import shown
from app.cli.send import read_stdin
from app.client import fleet
from app.client.session import SessionClient
from app.errors import EXIT_DONE, AppError
from app.paths import Paths
from app.protocol_review import CommentRequest
from app.wire_text import to_text
from snapshot.safe_text import safe_block

if TYPE_CHECKING:
    import argparse

    from app.cli.output import Output
    from app.protocol import Changes
    from app.protocol_review import Comment

_PLACE: Final = re.compile(r"(?s)(.*):([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?")


def comment(arguments: argparse.Namespace, output: Output) -> int:
    """Write, list or remove comments; they are in the same log as on the review screen."""
    paths = Paths.from_environment()
    session = fleet.find_session(paths, arguments.session).id
    if arguments.remove:
        asyncio.run(_remove(paths, session, arguments.remove))
        output.result({"session": session, "removed": arguments.remove})
    elif arguments.list or not (arguments.place or arguments.hunk):
        found = asyncio.run(_list(paths, session))
        value = {"session": session, "comments": msgspec.to_builtins(found)}
        output.result(value, lambda: print_comments(output, found))
    else:
        made = asyncio.run(_write(paths, session, arguments))
        value = {"session": session, "comment": msgspec.to_builtins(made)}
        output.result(value, lambda: print_comments(output, [made]))
    return EXIT_DONE


async def _list(paths: Paths, session: str) -> list[Comment]:
    async with await SessionClient.open(paths, session) as client:
        return await client.comments()


async def _remove(paths: Paths, session: str, name: str) -> None:
    async with await SessionClient.open(paths, session) as client:
        await client.uncomment(name)


async def _write(paths: Paths, session: str, arguments: argparse.Namespace) -> Comment:
    async with await SessionClient.open(paths, session) as client:
        changes = await client.changes(refresh=True)
        return await client.comment(request_of(arguments, changes))


def request_of(arguments: argparse.Namespace, changes: Changes) -> CommentRequest:
    """Return what the words mean. Raises AppError `usage`, `not-found`."""
    place, text = arguments.place, arguments.text
    if arguments.hunk and not text:
        place, text = "", place
    text = read_stdin() if text == "-" else text
    path, start, end = place_of(place, {file.path for file in changes.files})
    hunk = ""
    if arguments.hunk:
        path, hunk = find_hunk(changes, arguments.hunk)
    return CommentRequest(path, text, "old" if arguments.old else "new", start, end, hunk)


def place_of(text: str, known: set[str]) -> tuple[str, int, int]:
    """Return path, first and last line (0: none) of `PATH[:LINE[-LINE]]`; `.` is the review.

    A changed path of exactly that name wins over numbers at its end.
    """
    path = to_text(text.encode("utf-8", "surrogateescape"))
    if path == ".":
        return "", 0, 0
    path = path.removeprefix("./")
    found = _PLACE.fullmatch(path)
    if path in known or found is None:
        return path, 0, 0
    return found[1], int(found[2]), int(found[3] or found[2])


def find_hunk(changes: Changes, text: str) -> tuple[str, str]:
    """Return path and id of the hunk whose id begins with `text`. Raises AppError `not-found`."""
    found = [
        (file.path, hunk.id)
        for file in changes.files
        for hunk in file.hunks
        if hunk.id.startswith(text)
    ]
    if len(found) != 1:
        what = "There is no hunk" if not found else f"{len(found)} hunks begin with"
        raise AppError("not-found", f"{what} '{text}'.", "See: cloche changes ID --json")
    return found[0]


def print_comments(output: Output, comments: list[Comment]) -> None:
    """Print comments for people."""
    if not comments:
        output.line("There are no comments.")
    for one in comments:
        lines = f":{one.start}" + (f"-{one.end}" if one.end > one.start else "")
        place = (shown(one.path) or "the whole review") + (lines if one.start else "")
        marks = [word for word in ("outdated" * one.outdated, "sent" * one.sent) if word]
        output.line(f"{one.id}  {place}{'  (' + ', '.join(marks) + ')' if marks else ''}")
        output.block("\n".join(f"    {line}" for line in safe_block(one.text).text.split("\n")))
