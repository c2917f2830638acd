"""Has running sessions decide by rules that were just written."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from app.client.fleet import ACTIVE, list_sessions
from app.client.session import SessionClient
from app.errors import AppError

if TYPE_CHECKING:
    from app.paths import Paths
    from app.protocol import SessionInfo

GONE: Final = frozenset({"keeper-lost", "not-found"})
"""A session without a keeper reads the rules when it gets one."""


async def reload_rules(paths: Paths, session: str = "") -> list[str]:
    """Put the rules as they are now in force in one session, or in all of them.

    Returns a sentence for each session that could not do it: there the old ones still hold.
    """
    sessions = await asyncio.to_thread(list_sessions, paths)
    wanted = [
        info for info in sessions if info.state in ACTIVE and (not session or info.id == session)
    ]
    said = await asyncio.gather(*(_reload(paths, info) for info in wanted))
    return [sentence for sentence in said if sentence]


async def _reload(paths: Paths, info: SessionInfo) -> str:
    try:
        async with await SessionClient.open(paths, info.id, start=False) as client:
            await client.egress_reload()
    except AppError as error:
        return (
            "" if error.code in GONE else f"{info.id} still goes by the old rules: {error.message}"
        )
    return ""
