"""The keeper of a sandbox: a machine for one command, without agent, mirror and review.

Nothing of a sandbox outlives its client. The keeper ends the machine and its house removes the
folder as soon as nobody is connected; a keeper that finds a sandbox without one removes it at once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from app.keeper.keeper import Keeper
from app.keeper.shift import Shift, logged
from app.keeper.threads import in_thread
from app.records import find_machine
from vm.errors import NotStopped
from vm.machine.signals import end_process

if TYPE_CHECKING:
    from pathlib import Path

    from app.keeper.engine import Engine
    from app.keeper.terminal_record import TerminalRecord
    from app.paths import Paths
    from app.records import SessionRecord

QUIT_S: Final = 2.0
"""Seconds for QEMU to end itself; its disk is thrown away, so nothing is lost by a harder end."""


def keeper_of(
    record: SessionRecord, paths: Paths, folder: Path, terminal: TerminalRecord
) -> Keeper:
    """Return the keeper for a session of this kind."""
    kind = SandboxKeeper if record.sandbox else Keeper
    return kind(paths, folder, terminal)


class SandboxShift(Shift):
    """A sandbox's machine while it runs: there is nothing to carry and nothing to mirror."""

    def go(self, *, adopted: bool = False) -> None:
        """Only look after the machine and the host's disk."""
        del adopted
        for job in (self.room.watch(), self.pulse.watch()):
            self._tasks.append(asyncio.get_running_loop().create_task(logged(job)))

    async def take(self, *, freeze: bool = False) -> bool:
        """Mirror nothing."""
        del freeze
        return False


class SandboxKeeper(Keeper):
    """One sandbox's owner."""

    @property
    def stays(self) -> bool:
        """A machine alone is no reason: whoever wanted it is gone."""
        return False

    async def wake(self) -> None:
        """End what an earlier keeper left running; nobody waits for it any more."""
        await self._end_stray()

    async def _start_agent(self, engine: Engine) -> None:
        self.ledger.change(state="running", agent_state="working", message="")
        self._work(self._new_shift(engine))

    def _new_shift(self, engine: Engine) -> Shift:
        return SandboxShift(self.ledger, self.tree, engine, self._terminal, None, self.network)

    async def leave(self) -> bool:
        """End the machine, however far it came; False when it cannot be ended."""
        await self._call_off()
        shift, self.shift = self.shift, None
        try:
            if shift is not None:
                await shift.end()
                await shift.engine.machine.stop(QUIT_S)
                await shift.engine.links.close()
            await self._end_stray()
        except NotStopped as error:
            self.ledger.fail(error)
            return False
        return True

    async def _end_stray(self) -> None:
        """End a machine that nobody holds: started in a moment before a keeper was killed."""
        machine = self.ledger.state.machine
        process = machine if machine is not None and machine.alive else None
        process = process or await in_thread(lambda: find_machine(self.ledger.folder))
        if process is not None:
            await end_process(process.pid, process.start_time)
