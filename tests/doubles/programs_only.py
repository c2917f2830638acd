"""What a keeper offers to a control socket, of which only programs in the guest are there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.errors import AppError
from app.keeper import guest_program

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import asyncssh
    import msgspec

    from app.keeper.carrying import ClientSession
    from app.keeper.guest_files import GuestFiles
    from app.keeper.guest_program import GuestProgram
    from app.protocol import Event


class ProgramsOnly:
    """Starts programs over one SSH connection; has no files, and never an event."""

    def __init__(self, ssh: asyncssh.SSHClientConnection) -> None:
        self._ssh = ssh
        self.typed = 0
        """Pieces of input of programs on terminals."""

    async def call(self, method: str, params: msgspec.Raw) -> object:
        del method, params
        return {"protocol": 1, "version": ""}

    async def events(self) -> AsyncIterator[Event]:
        await asyncio.Event().wait()
        yield  # type: ignore[misc]  # it makes this a generator

    async def open_process(
        self,
        argv: tuple[str, ...],
        *,
        root: bool,
        term: tuple[str, int, int] | None,
        place: guest_program.Place = guest_program.HOME,
    ) -> GuestProgram:
        return await guest_program.start(
            self._ssh, argv, root=root, term=term, place=place, typed=self._typed
        )

    def _typed(self) -> None:
        self.typed += 1

    async def open_files(self, *, root: bool) -> GuestFiles:
        raise AppError("not-running", "There is no machine.")

    async def copy(self, client: ClientSession) -> int:
        raise AppError("not-running", "There is no machine.")
