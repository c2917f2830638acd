"""How a running machine ends: stopped because somebody asked, or lost without being asked.

Whichever it is, and whatever goes wrong on the way, the session's state says afterwards what is
true: stopped, lost, or running on.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from app.errors import app_error
from app.records import LOST, lost_hint
from vm.errors import NotStopped
from vm.steps import reached

if TYPE_CHECKING:
    from app.keeper.engine import Engine
    from app.keeper.ledger import Ledger
    from app.keeper.shift import Shift


class Owner(Protocol):
    """Who holds the work on the machine."""

    shift: Shift | None

    def work_on(self, engine: Engine) -> None:
        """Take up the work on a machine that lives on."""
        ...

    async def show_end(self) -> None:
        """Tell the terminal's clients that there is no agent."""
        ...


class End:
    """Brings the work on a machine to its end, and says what became of the session."""

    def __init__(self, ledger: Ledger, owner: Owner) -> None:
        self._ledger = ledger
        self._owner = owner

    async def stop(self, shift: Shift) -> None:
        """Freeze, mirror for the last time, end the machine. Raises NotStopped when it lives on."""
        self._ledger.change(state="stopping", message="")
        reached("stop.begun")
        try:
            message = await self._end(shift)
        except BaseException as error:  # whatever it is, the session must not stay "stopping"
            await self._not_stopped(shift, error)
            raise
        self._owner.shift = None
        self._ledger.change(
            state="stopped",
            agent_state=self._agent_state("idle"),
            machine=None,
            message=message,
            hint=f"Read it: cloche resume {self._ledger.record.id} --no-agent" if message else "",
        )
        reached("stop.written")
        await self._owner.show_end()

    async def _end(self, shift: Shift) -> str:
        """End the machine; return what kept the last changes from being mirrored, or nothing."""
        message = await shift.take_last()
        reached("stop.mirrored")
        await shift.end()
        await shift.engine.stop(asked=not shift.pulse.silent)
        reached("stop.ended")
        return message

    async def _not_stopped(self, shift: Shift, error: BaseException) -> None:
        """Go on with a machine that lives on; say of one that ended that it is lost."""
        if not isinstance(error, NotStopped) and not shift.engine.machine.running:
            await self._lost(shift)
            return
        known = app_error(error)
        message = known.message if known else "The stop was broken off by a fault."
        hint = f"Stop it again: cloche stop {self._ledger.record.id}"
        self._ledger.change(state="running", message=message, hint=hint)
        if not isinstance(error, asyncio.CancelledError):  # else the next keeper goes on with it
            await shift.end()
            self._owner.work_on(shift.engine)

    async def watch(self, shift: Shift) -> None:
        """Wait for the machine's end; say that it is lost unless somebody is stopping it."""
        await shift.engine.machine.wait_exit()
        if self._owner.shift is shift and self._ledger.state.state != "stopping":
            await self._lost(shift)

    async def _lost(self, shift: Shift) -> None:
        """Say that the machine ended by itself, and let go of what is left of it."""
        self._ledger.change(
            state="lost",
            agent_state=self._agent_state("failed"),
            machine=None,
            message=LOST,
            hint=lost_hint(self._ledger.record.id),
        )
        await shift.end()
        await shift.engine.let_go()
        if self._owner.shift is shift:  # whoever stopped it meanwhile may have begun the next one
            self._owner.shift = None
        await self._owner.show_end()

    def _agent_state(self, cut_off: str) -> str:
        """Return what the agent is now: as it ended, or `cut_off` where it still ran."""
        state = self._ledger.state
        return state.agent_state if state.exit_code is not None else cut_off
