"""Names of sessions: no two have the same one, and none is meant by another's id."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

import msgspec

from app.client.fleet import list_sessions
from app.client.session import SessionClient
from app.errors import AppError
from app.locking import locked
from app.paths import private_folder
from app.protocol import MAX_NAME

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from app.paths import Paths
    from app.records import SessionRecord

NAMES_LOCK: Final = "names.lock"


def held(paths: Paths) -> AbstractContextManager[None]:
    """Let nobody else give a session a name; who asks for one holds this until it is on disk."""
    return locked(private_folder(paths.state) / NAMES_LOCK)


def _taken(paths: Paths, but: str = "") -> set[str]:
    """Return what a name must not be: the names and ids of all sessions `but` one."""
    others = [info for info in list_sessions(paths) if info.id != but]
    return {name for info in others for name in (info.name, info.id)}


def named(paths: Paths, record: SessionRecord, stem: str) -> SessionRecord:
    """Return the record with a name that no other session has; call it with `held`.

    One without a name gets `stem`, or that with a number. Raises AppError `usage` for a taken one.
    """
    if record.sandbox:
        return record
    if record.name:
        check_name(paths, record.name)
        return record
    taken, number = _taken(paths), 1
    while (name := stem if number == 1 else f"{stem}-{number}") in taken:
        number += 1
    return msgspec.structs.replace(record, name=name)


def check_name(paths: Paths, name: str, *, but: str = "", again: str = "--name NAME") -> None:
    """Raise AppError `usage` unless a session may be called so; `but` is the one that it is."""
    if not name or len(name) > MAX_NAME or not name.isprintable():
        text = f"A name has 1 to {MAX_NAME} printable characters."
        raise AppError("usage", text, f"Choose another: {again}")
    if name in _taken(paths, but):
        text = f"There is a session called '{name}' already."
        raise AppError("usage", text, f"Choose another: {again}")


async def rename_session(paths: Paths, session_id: str, name: str) -> None:
    """Give a session another name, which none of the others may have or be meant by.

    Raises AppError `usage` for such a name.
    """
    again = f"cloche rename {session_id} NAME"
    check_name(paths, name, but=session_id, again=again)
    async with await SessionClient.open(paths, session_id) as client:
        with contextlib.ExitStack() as stack:
            await asyncio.to_thread(stack.enter_context, held(paths))
            check_name(paths, name, but=session_id, again=again)
            await client.rename(name)
