"""Whether a machine that runs answers at all: QEMU may be stopped by a signal, or hang.

Nothing that is asked of such a machine comes back, so nothing is asked of it: whoever wants
something hears at once how it stands and what to do.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeVar

from app.errors import AppError
from vm.errors import LinkLost, VMError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from app.keeper.ledger import Ledger
    from app.keeper.room import Room
    from vm.machine.machine import Machine

log = logging.getLogger(__name__)

LOOK_S: Final = 3.0
"""Pause between two looks, in seconds."""

ANSWER_S: Final = 15.0
"""Seconds in which QEMU's monitor must answer; a millisecond is usual, a second under load."""

T = TypeVar("T")


class Pulse:
    """Watches one running machine."""

    def __init__(self, ledger: Ledger, machine: Machine, room: Room) -> None:
        self._ledger = ledger
        self._machine = machine
        self._room = room
        self._silent = asyncio.Event()
        self._told = ""

    @property
    def silent(self) -> bool:
        """Whether the machine stands still or does not answer, as far as is known now."""
        return self._silent.is_set() or self._machine.stands_still

    def check(self) -> None:
        """Raise AppError `no-answer` when nothing may be asked of the machine, and say why."""
        if self.silent:
            raise AppError("no-answer", self._sentence(), self._hint())

    def wake(self) -> None:
        """Let a stopped process go on."""
        self._machine.wake()

    async def watch(self) -> None:
        """Hold the session as paused while QEMU is stopped; say so when it does not answer."""
        while self._machine.running:
            answers = not self._machine.stands_still and await self._answers()
            self._tell("" if answers or not self._machine.running else self._sentence())
            await asyncio.sleep(LOOK_S)

    async def unless_silent(self, work: Coroutine[object, object, T]) -> T:
        """Do some work with the guest; broken off by LinkLost when the machine falls silent."""
        doing = asyncio.get_running_loop().create_task(work)
        silence = asyncio.get_running_loop().create_task(self._silent.wait())
        try:
            await asyncio.wait((doing, silence), return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                raise LinkLost(self._sentence(), self._hint())
            return await doing
        finally:
            doing.cancel()
            silence.cancel()
            await asyncio.gather(doing, silence, return_exceptions=True)

    async def _answers(self) -> bool:
        """Ask QEMU how it is; a monitor that was closed says nothing about the machine."""
        try:
            await self._machine.qmp.execute("query-status", timeout_s=ANSWER_S)
        except VMError as error:
            log.info("the machine's monitor: %s", error.message)
            return not self._machine.qmp.connected
        return True

    def _tell(self, sentence: str) -> None:
        if sentence == self._told:
            return
        self._told = sentence
        log.warning("%s", sentence or "the machine answers again")
        if sentence:
            self._silent.set()
            self._ledger.change(state="paused", message=sentence, hint=self._hint())
        else:
            self._silent.clear()
            if self._ledger.state.state == "paused" and not self._room.lacking:
                self._ledger.change(state="running", message="")

    def _sentence(self) -> str:
        pid = self._machine.pid
        if self._machine.stands_still:
            return f"The machine stands still: its process {pid} was stopped from outside."
        return f"The machine does not answer: its process {pid} hangs."

    def _hint(self) -> str:
        name = self._ledger.record.id
        if self._machine.stands_still:
            return f"Let it go on: cloche resume {name}; or end it: cloche stop {name}"
        return f"Wait, or end it: cloche stop {name}"
