"""One connection to one session's keeper: `SessionClient`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from app.paths import Paths
    from app.protocol import (
        Changes,
        Decide,
        Event,
        MergeReport,
        MergeRequest,
        SessionInfo,
        UndoReport,
    )


class SessionClient:
    """A connection to the keeper of one session; starts the keeper when none runs.

    An async context manager. Every call is bounded in time and raises AppError with the keeper's
    code, message and hint when it fails; a lost keeper is the code `keeper-lost`.
    """

    @classmethod
    async def open(cls, paths: Paths, session_id: str) -> Self:
        """Connect to the keeper of `session_id` (exact id), starting one when needed."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection; the keeper and the session go on."""
        raise NotImplementedError

    @property
    def pane_socket_path(self) -> Path:
        """Where the session's terminal is served (see architecture, `pane.sock`)."""
        raise NotImplementedError

    async def info(self) -> SessionInfo:
        """Return the session as the keeper sees it now."""
        raise NotImplementedError

    def events(self) -> AsyncIterator[Event]:
        """Subscribe and yield events until the connection ends (then AppError `keeper-lost`)."""
        raise NotImplementedError

    async def changes(self, *, refresh: bool = False) -> Changes:
        """Return the changes of the last generation; `refresh` takes a mirror pass first."""
        raise NotImplementedError

    async def decide(self, decisions: Sequence[Decide]) -> None:
        """Record decisions as one undo step."""
        raise NotImplementedError

    async def undo_decision(self) -> None:
        """Take back the last step of decisions."""
        raise NotImplementedError

    async def redo_decision(self) -> None:
        """Do the step again that was taken back last."""
        raise NotImplementedError

    async def merge(self, request: MergeRequest) -> MergeReport:
        """Write what is accepted into the workspace (or say what would be written)."""
        raise NotImplementedError

    async def undo(self, merge: str) -> UndoReport:
        """Take a whole merge back."""
        raise NotImplementedError

    async def blob(self, digest: str) -> bytes:
        """Return the content named by a blake3 digest (base or agent side of a change)."""
        raise NotImplementedError

    async def resume(self, *, agent: bool = True) -> None:
        """Boot the session's disk again; without `agent` only to mirror what it holds."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Freeze, mirror for the last time and end the machine; returns when it has ended."""
        raise NotImplementedError
