"""Which change of a session a command is about: the whole of it, a commit, or a branch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from app.errors import AppError
from snapshot.safe_text import encode, safe_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from app.client.session import SessionClient
    from app.protocol import FileChange, SessionInfo
    from app.protocol_commits import CommitList

MIN_PREFIX: Final = 4
"""Fewest letters that name a commit."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which change of a session the command is about."""

    info: SessionInfo
    path: str
    commit: str
    """Empty for the whole change; else what names a commit or a branch."""


@dataclass(frozen=True, slots=True)
class Source:
    """Changed files, and what reads their contents."""

    files: list[FileChange]
    read: Callable[[str], Awaitable[bytes]]
    facts: dict[str, object] = field(default_factory=dict[str, object])
    """Where it is not the whole change: which commits are compared, and what was left out."""


async def source_of(client: SessionClient, asked: Asked) -> Source:
    """Return what changed, narrowed to the path that was asked for. Raises AppError."""
    if asked.commit:
        source = await commit_source(client, asked.info, asked.commit)
    else:
        source = Source(list((await client.changes(refresh=True)).files), client.blob)
    files = [file for file in source.files if asked.path in ("", file.path, file.old_path)]
    if not files and asked.path:
        text = f"Nothing changed at '{asked.path}'."
        raise AppError("not-found", text, f"See: cloche changes {asked.info.id}")
    return replace(source, files=files)


async def commit_source(client: SessionClient, info: SessionInfo, word: str) -> Source:
    """Return what a commit or a branch of the agent changed. Raises AppError `not-found`."""
    found = await client.commits()
    named = named_commit(found, word)
    if named is None and info.state == "running":
        found = await client.commits(look=True)
        named = named_commit(found, word)
    if named is None:
        text = f"'{safe_name(encode(word)).text}' names no commit or branch of the agent."
        raise AppError("not-found", text, f"List them: cloche commits {info.id}")
    commit, whole = named
    change = await client.commit_change(commit, whole=whole)
    facts: dict[str, object] = {"commit": commit, "base": change.base, "left_out": change.left_out}
    return Source(list(change.files), client.commit_content, facts)


def named_commit(found: CommitList, word: str) -> tuple[str, bool] | None:
    """Return the commit that a branch's name or the beginning of an id means; True: its branch.

    Raises AppError `usage` where more than one commit begins so.
    """
    for branch in found.branches:
        if branch.name == word:
            return branch.commit, True
    same = [one.id for one in found.commits if one.id.startswith(word.lower())]
    if len(word) < MIN_PREFIX or not same:
        return None
    if len(same) > 1:
        hint = f"List them: cloche commits {found.session}"
        raise AppError("usage", f"{len(same)} commits begin with '{word}'.", hint)
    return same[0], False
