"""The fleet of this machine: `FleetPort` on top of `app.client`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.client import fleet
from app.client.removing import remove_session
from app.client.session import SessionClient
from app.client.starting import StartRequest, start_session
from app.config import load_config
from app.services.ports import AgentChoice

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from app.paths import Paths
    from app.protocol import SessionInfo


class LocalFleet:
    """All sessions of one user on this machine."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def agents(self) -> tuple[AgentChoice, ...]:
        """Return the configured agents, the built-in ones first, and which lack their image."""
        from vm.image import store  # only a new session asks

        found = load_config(self._paths.config).agents.values()
        there = store.names(self._paths.store)
        return tuple(
            AgentChoice(agent.name, agent.description, agent.stands_on in there) for agent in found
        )

    async def watch(self) -> AsyncIterator[list[SessionInfo]]:
        """Yield the list of sessions now and each time it changed."""
        async for sessions in fleet.watch_sessions(self._paths):
            yield sessions

    async def open(self, session_id: str) -> SessionClient:
        """Connect to a session's keeper."""
        return await SessionClient.open(self._paths, session_id)

    async def start(self, agent: str, workspace: Path, name: str) -> str:
        """Start a session and return its id at once."""
        request = StartRequest(agent=agent, workspace=workspace, name=name)
        return await start_session(self._paths, request)

    async def resume(self, session_id: str) -> None:
        """Boot a session again."""
        await fleet.resume_session(self._paths, session_id)

    async def stop(self, session_id: str) -> None:
        """End a session's machine."""
        await fleet.stop_session(self._paths, session_id)

    async def remove(self, session_id: str) -> None:
        """Delete a session that does not run."""
        await remove_session(self._paths, session_id)
