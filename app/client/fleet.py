"""All sessions of the user, read from disk and from facts about processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from app.paths import Paths
    from app.protocol import SessionInfo


@dataclass(frozen=True, slots=True)
class StartRequest:
    """What a new session shall be; `argv` is appended to the agent's own command."""

    agent: str
    workspace: Path
    name: str = ""
    argv: tuple[str, ...] = ()
    columns: int = 100
    rows: int = 30


def list_sessions(paths: Paths) -> list[SessionInfo]:
    """Return every session, oldest first; true even where no keeper runs. Never blocks long."""
    raise NotImplementedError


def watch_sessions(paths: Paths) -> AsyncIterator[list[SessionInfo]]:
    """Yield the list now and then each time that something in it changed."""
    raise NotImplementedError


def find_session(paths: Paths, text: str) -> SessionInfo:
    """Return the session that an id, a unique prefix of one, or a name means.

    Raises AppError `not-found` when none or several match.
    """
    raise NotImplementedError


async def start_session(paths: Paths, request: StartRequest) -> str:
    """Check everything, make the session's folder, start its keeper and return the id at once.

    Raises AppError (one sentence, exact fix) before anything is written when the agent is unknown,
    the workspace cannot be used or this host lacks something. The session is then `starting`.
    """
    raise NotImplementedError


async def resume_session(paths: Paths, session_id: str, *, agent: bool = True) -> None:
    """Boot a stopped, failed or lost session again; returns at once, state `starting`."""
    raise NotImplementedError


async def stop_session(paths: Paths, session_id: str) -> None:
    """Freeze, mirror for the last time and end the machine; returns when it has ended."""
    raise NotImplementedError


async def remove_session(paths: Paths, session_id: str, *, force: bool = False) -> None:
    """Delete a session's folder; refuses while it runs unless `force` (which stops it)."""
    raise NotImplementedError
