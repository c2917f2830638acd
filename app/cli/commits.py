"""`cloche commits`: the agent's commits, listed and taken as refs of the user's repository."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

import msgspec

from app.cli.review import shown
from app.client import fleet
from app.client.session import SessionClient
from app.errors import EXIT_DONE
from app.paths import Paths
from snapshot.safe_text import safe_line

if TYPE_CHECKING:
    import argparse

    from app.cli.output import Output
    from app.protocol_commits import CommitInfo, CommitList


def commits(arguments: argparse.Namespace, output: Output) -> int:
    """List what the agent committed; with `--fetch` make refs/cloche/ID/BRANCH of it."""
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session)
    found = asyncio.run(
        _commits(paths, info.id, look=info.state == "running", publish=arguments.fetch)
    )
    output.result(msgspec.to_builtins(found), lambda: _print(output, found))
    return EXIT_DONE


MAX_NAMED: Final = 20
"""Withheld paths of one commit that are printed by name."""


async def _commits(paths: Paths, session: str, *, look: bool, publish: bool) -> CommitList:
    async with await SessionClient.open(paths, session) as client:
        return await client.commits(look=look, publish=publish)


def _print(output: Output, found: CommitList) -> None:
    if not found.commits:
        output.line("The agent made no new commits.")
    for commit in found.commits:
        _print_commit(output, commit)
    for branch in found.branches:
        output.line(f"{branch.commit[:12]}  {branch.ref or branch.name}")
    for ref in found.left_out:
        output.line(f"left out {shown(ref)}: only branches with plain names are taken")
    if found.branches and not all(branch.ref for branch in found.branches):
        output.line(f"Take them: cloche commits {found.session} --fetch")
    elif found.branches:
        output.line(f"Look: git log -p {found.branches[0].ref}")


def _print_commit(output: Output, commit: CommitInfo) -> None:
    day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(min(commit.at, 253402300799)))
    subject = safe_line(commit.message.split("\n", 1)[0]).text[:100]
    number = f"{len(commit.files)}{'+' if commit.cut else ''}"
    count = f"{number} {'file' if number == '1' else 'files'}{_lines(commit)}"
    merge = ", merge" if len(commit.parents) > 1 else ""
    author = safe_line(commit.author).text[:60]
    output.line(f"{commit.id[:12]}  {day}  {author}  {subject}  ({count}{merge})")
    for path in commit.withheld[:MAX_NAMED]:
        output.line(f"    touches {shown(path)}, which is withheld or looks like a secret")
    if len(commit.withheld) > MAX_NAMED:
        output.line(f"    and {len(commit.withheld) - MAX_NAMED} more such paths")
    for file in commit.files:
        if file.submodule:
            output.line(f"    changes the submodule {shown(file.path)}; its contents do not come")


def _lines(commit: CommitInfo) -> str:
    """Return how many lines a commit changed, as far as they were counted."""
    added = sum(file.added or 0 for file in commit.files)
    removed = sum(file.removed or 0 for file in commit.files)
    return f", +{added} -{removed}" if added or removed else ""
