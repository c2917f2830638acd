"""All sessions of the user, read from disk and from facts about processes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from app import records
from app.client.session import SessionClient
from app.errors import AppError
from app.paths import private_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from app.paths import Paths
    from app.protocol import SessionInfo

ACTIVE: Final = frozenset({"starting", "running", "paused", "stopping"})
"""States in which a session's machine exists or is about to."""

RECHECK_MS: Final = 2000
"""How often processes are looked at when no file changed: a death writes no file."""


def list_sessions(paths: Paths) -> list[SessionInfo]:
    """Return every session, oldest first; true even where no keeper runs. Never blocks long."""
    return records.all_sessions(paths)


async def watch_sessions(paths: Paths) -> AsyncIterator[list[SessionInfo]]:
    """Yield the agents' sessions now, and again each time that something in them changed."""
    from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

    private_folder(paths.state)
    private_folder(paths.sessions)
    last = _agents_sessions(paths)
    yield last
    watch = awatch(
        paths.sessions,
        watch_filter=lambda _, path: path.endswith(("state.json", "session.json")),
        recursive=True,
        rust_timeout=RECHECK_MS,
        yield_on_timeout=True,
    )
    async for _ in watch:
        now = await asyncio.to_thread(_agents_sessions, paths)
        if now != last:
            last = now
            yield now


def _agents_sessions(paths: Paths) -> list[SessionInfo]:
    return [info for info in list_sessions(paths) if not info.sandbox]


def find_session(paths: Paths, text: str, *, sandbox: bool = False) -> SessionInfo:
    """Return the session that an id, a unique prefix of one, or a name means.

    Raises AppError `not-found` when none or several match, and `usage` for a sandbox where the
    command, which does not say `sandbox`, needs an agent's session.
    """
    info = _find(list_sessions(paths), text)
    if info.sandbox and not sandbox:
        raise AppError(
            "usage",
            f"{info.id} is a sandbox, which has no agent and nothing to review.",
            f"Look into it: cloche exec {info.id} -- CMD",
        )
    return info


def _find(sessions: list[SessionInfo], text: str) -> SessionInfo:
    for exact in (
        [info for info in sessions if info.id == text],
        [info for info in sessions if info.name == text],
        [info for info in sessions if text and info.id.startswith(text)],
    ):
        if len(exact) == 1:
            return exact[0]
        if exact:
            names = ", ".join(info.id for info in exact[:5])
            raise AppError(
                "not-found", f"'{text}' means {len(exact)} sessions.", f"Say which one: {names}"
            )
    raise AppError("not-found", f"There is no session '{text}'.", "See them: cloche ps")


async def resume_session(paths: Paths, session_id: str, *, agent: bool = True) -> None:
    """Boot a stopped, failed or lost session again; returns at once, state `starting`.

    Where the machine runs and the agent has ended, the agent is started in it before this returns.
    """
    async with await SessionClient.open(paths, session_id) as client:
        await client.resume(agent=agent)


async def stop_session(paths: Paths, session_id: str) -> None:
    """Freeze, mirror for the last time and end the machine; returns when it has ended."""
    async with await SessionClient.open(paths, session_id) as client:
        await client.stop()
