"""What a new keeper finds: a machine to take over, a start or a stop to go on with, or an end."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

from app.errors import AppError
from app.keeper.engine import adopt
from app.keeper.threads import end_tasks, in_thread
from app.records import INTERRUPTED, find_machine, interrupted_hint, lost_hint, lost_message, truth
from vm.errors import CutOff, VMError
from vm.machine.signals import end_process, wake_process
from vm.steps import reached

if TYPE_CHECKING:
    from app.keeper.boot import Workshop
    from app.keeper.engine import Engine
    from app.keeper.ledger import Ledger
    from app.keeper.tree import Tree
    from app.records import Process

log = logging.getLogger(__name__)

DEAF_RETRY_S: Final = 2.0
"""Pause between two attempts to take over a machine whose monitor does not answer."""

DEAF: Final = "The machine runs, but its monitor does not answer."

CUT_OFF: Final = "The machine runs, but its sockets were removed: nothing can reach it any more."

REVIVE_S: Final = 15.0
"""For how long a process that was let go on is waited for; an attempt takes at most 10 s."""


class Owner(Protocol):
    """What the keeper does with a machine that was found."""

    def work_on(self, engine: Engine) -> None:
        """Carry its agent and mirror its changes."""
        ...

    def await_guest(self, engine: Engine) -> None:
        """Go on with a start."""
        ...

    def read_on(self, engine: Engine) -> None:
        """Go on reading its disk, then end it."""
        ...

    def stop_on(self, engine: Engine) -> None:
        """Go on with a stop."""
        ...

    async def show_end(self) -> None:
        """Tell the terminal's clients that there is no agent."""
        ...


class Waker:
    """Finds out how a session stands; afterwards `deaf` may name a machine that must be waited for.

    A machine that runs and does not answer is neither taken over nor ended by this: it may be
    stopped by a debugger, or by a host that has better things to do.
    """

    def __init__(self, ledger: Ledger, tree: Tree, workshop: Workshop, owner: Owner) -> None:
        self._ledger = ledger
        self._tree = tree
        self._workshop = workshop
        self._owner = owner
        self._trying: asyncio.Task[None] | None = None
        self.deaf: Process | None = None
        """A machine of ours that runs, whose monitor does not answer."""
        self.cut_off = False
        """Whether `deaf` can never answer, for its sockets are gone."""

    async def wake(self) -> None:
        """Adopt a running machine, or say what became of it."""
        state = self._ledger.state
        if state.prepared:
            await self._tree.open()
            self._ledger.change(open_units=await self._tree.open_units())
        process = state.machine if state.machine is not None and state.machine.alive else None
        process = process or await in_thread(lambda: find_machine(self._ledger.folder))
        if process is None:
            await self._say_what_became_of_it()
            return
        self._ledger.journal.write("adopt", f"process {process.pid}")
        self._ledger.change(machine=process)
        reached("adopt.found")
        await self._take_over(process)

    async def _say_what_became_of_it(self) -> None:
        found = truth(self._ledger.folder, self._ledger.state)
        if found.state == "starting":  # `truth` sees that a keeper lives: it is this one
            self._interrupted()
        elif found.state == "stopping":  # likewise; it has ended before that was written down
            self._lost(self._ledger.state.machine)
        else:
            self._ledger.change(
                state=found.state,
                message=found.message,
                fault=found.fault,
                hint=found.hint,
                machine=None,
            )
        await self._owner.show_end()

    def _interrupted(self) -> None:
        hint = interrupted_hint(self._ledger.record.id)
        self._ledger.change(state="failed", message=INTERRUPTED, hint=hint, machine=None)

    def _lost(self, machine: Process | None) -> None:
        hint = lost_hint(self._ledger.record.id)
        self._ledger.change(state="lost", machine=None, message=lost_message(machine), hint=hint)

    async def _take_over(self, process: Process) -> None:
        state = self._ledger.state
        try:
            engine = await adopt(self._workshop, process, state.accelerator or "tcg")
        except (VMError, OSError) as error:
            await self._not_taken_over(process, error)
            return
        self.deaf = None
        reached("adopt.taken")
        if engine is None:
            self._interrupted() if state.state == "starting" else self._lost(process)
            await self._owner.show_end()
        elif not state.prepared:  # killed before anything was in it
            await engine.stop()
            self._interrupted()
        elif state.state == "stopping":
            self._owner.stop_on(engine)
        elif state.maintenance:
            self._owner.read_on(engine)
        elif state.state == "starting":
            self._owner.await_guest(engine)
        else:
            self._owner.work_on(engine)

    async def _not_taken_over(self, process: Process, error: Exception) -> None:
        """End what never came to life; of any other machine nobody can know what it is worth."""
        if self.deaf is None or self.cut_off is not isinstance(error, CutOff):  # once, not each try
            log.warning("the machine (process %d) is not taken over: %s", process.pid, error)
        if self._ledger.state.state == "starting":
            await end_process(process.pid, process.start_time)
            self._interrupted()
            return
        self.deaf = process
        self.cut_off = isinstance(error, CutOff)
        state = "stopping" if self._ledger.state.state == "stopping" else "paused"
        self._ledger.change(state=state, message=self._sentence(), hint=self._hint())
        if self._trying is None:
            self._trying = asyncio.get_running_loop().create_task(self._try_again(process))

    def _sentence(self) -> str:
        return CUT_OFF if self.cut_off else DEAF

    def _hint(self) -> str:
        name = self._ledger.record.id
        if self.cut_off:
            return f"Start it anew from its disk: cloche stop {name} && cloche resume {name}"
        return f"Let it go on: cloche resume {name}; or end it: cloche stop {name}"

    async def _try_again(self, process: Process) -> None:
        while self.deaf is not None:
            await asyncio.sleep(DEAF_RETRY_S)
            await self._take_over(process)
        if self._ledger.state.message in (DEAF, CUT_OFF):
            self._ledger.change(message="")

    def refuse_deaf(self) -> None:
        """Raise AppError `no-answer` while there is a machine that does not answer."""
        if self.deaf is not None:
            raise AppError("no-answer", self._sentence(), self._hint())

    async def wake_deaf(self) -> None:
        """Let a stopped process go on, and wait until it is taken over (or has ended).

        Raises AppError `no-answer` when it does not answer.
        """
        trying = self._trying
        if self.deaf is not None and not self.cut_off:
            wake_process(self.deaf.pid, self.deaf.start_time)
            if trying is not None:
                await asyncio.wait([trying], timeout=REVIVE_S)
        self.refuse_deaf()

    async def end_deaf(self) -> None:
        """End a machine that does not answer, by signals. Raises NotStopped when it lives on."""
        await self.close()
        process, self.deaf = self.deaf, None
        if process is None:
            return
        await end_process(process.pid, process.start_time)
        hint = f"Read it: cloche resume {self._ledger.record.id} --no-agent"
        message = "The machine did not answer and was ended; its last changes are on its disk only."
        self._ledger.change(
            state="stopped", agent_state="idle", machine=None, message=message, hint=hint
        )
        await self._owner.show_end()

    async def close(self) -> None:
        """Try no longer."""
        trying, self._trying = self._trying, None
        if trying is not None:
            await end_tasks([trying])
