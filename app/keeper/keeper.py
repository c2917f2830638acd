"""The keeper: owns one session from its first byte to its removal.

It holds no truth of its own: every fact is on disk before a client hears of it, so a keeper may be
killed at any moment and the next one goes on (a machine that still runs is adopted).
"""

from __future__ import annotations

import asyncio
import logging
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from app.errors import AppError, not_running
from app.keeper.boot import Workshop
from app.keeper.ending import End
from app.keeper.governor import READ_WAIT_S, Governor
from app.keeper.ledger import Ledger
from app.keeper.network import GuestNetwork
from app.keeper.shift import Shift
from app.keeper.starting import Starter
from app.keeper.threads import end_tasks, looked_at
from app.keeper.tree import Tree
from app.keeper.waking import Waker
from vm.steps import reached

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from app.keeper.agent_terminal import AgentTerminal
    from app.keeper.commits import Commits
    from app.keeper.engine import Engine
    from app.keeper.forwards import Forwards
    from app.keeper.links import Links
    from app.keeper.pane import PaneServer
    from app.keeper.terminal_record import TerminalRecord
    from app.paths import Paths

log = logging.getLogger(__name__)

ADOPT_S: Final = 120.0
"""Seconds in which the guest of an adopted machine that was starting must answer."""


class Keeper:
    """One session's owner. All methods run on one event loop."""

    def __init__(self, paths: Paths, folder: Path, terminal: TerminalRecord) -> None:
        self.ledger = Ledger(folder)
        self.record = self.ledger.record
        self.tree = Tree(self.record, folder)
        self.network = GuestNetwork(paths, self.ledger)
        self.pane: PaneServer | None = None
        self.shift: Shift | None = None
        """The work on the running machine."""
        self._terminal = terminal
        self._workshop = Workshop(paths, self.record, folder)
        self._memory = Governor(paths, self.ledger)
        self._waker = Waker(self.ledger, self.tree, self._workshop, self)
        self._starter = Starter(self.ledger, self.tree, self.network, self._workshop, self._memory)
        self._end = End(self.ledger, self)
        self._life = asyncio.Lock()
        self._begun: asyncio.Task[None] | None = None
        self._guard: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    @cached_property
    def commits(self) -> Commits:
        """The agent's commits; what reads git's objects is loaded when somebody asks."""
        from app.keeper.commits import Commits

        return Commits(self.record, self.ledger.folder)

    @property
    def engine(self) -> Engine | None:
        """The running machine and its links."""
        return self.shift.engine if self.shift is not None else None

    @property
    def agent(self) -> AgentTerminal | None:
        """The terminal of the running agent."""
        return self.shift.agent if self.shift is not None else None

    async def world_env(self) -> dict[str, str]:
        """Return the variables of every program in the guest: of image, network and broker.

        Raises AppError `not-running`.
        """
        await self._running().served()
        return {**self.record.world_env, **self.network.broker.env}

    def typed(self) -> None:
        """Note that somebody types into the agent's terminal."""
        if self.shift is not None:
            self.shift.typed()
        self.make_room()

    def make_room(self) -> None:
        """Let the terminal come before the network, where both share an emulated processor."""
        if self.ledger.state.accelerator == "tcg":
            self.network.typed()

    def links(self) -> Links:
        """Return the links to the running machine. Raises AppError `not-running`."""
        shift = self._running()
        shift.check()
        return shift.engine.links

    @property
    def forwards(self) -> Forwards:
        """The forwarded ports of the running machine. Raises AppError `not-running`."""
        return self._running().forwards

    def _running(self) -> Shift:
        self._waker.refuse_deaf()
        if self.shift is None:
            state = self.ledger.state
            raise not_running(self.record.id, state.state, state.message, state.hint)
        return self.shift

    @property
    def busy(self) -> bool:
        """Whether there is a machine, or one is being started or ended."""
        begun = self._begun is not None and not self._begun.done()
        machine = self.shift is not None or self._waker.deaf is not None
        return machine or begun or self._life.locked()

    @property
    def stays(self) -> bool:
        """Whether the keeper must stay though no client is connected."""
        return self.busy

    async def leave(self) -> bool:
        """Make ready to go; True when the session shall go, too."""
        return False

    async def wake(self) -> None:
        """Find out how things are: adopt a running machine, or say what became of it."""
        await self._waker.wake()
        machine = self.ledger.state.machine
        if machine is not None and machine.alive:
            self._memory.hold(machine)

    def await_guest(self, engine: Engine) -> None:
        """Go on with a start that an earlier keeper had begun."""
        self._go_on(engine, self._await_guest)

    def read_on(self, engine: Engine) -> None:
        """Go on reading a disk for which an earlier keeper had started a machine."""
        self._go_on(engine, self._read_disk)

    def work_on(self, engine: Engine) -> None:
        """Carry and mirror a machine whose agent was started before."""
        self._work(self._new_shift(engine), adopted=True)

    def stop_on(self, engine: Engine) -> None:
        """Go on with a stop that an earlier keeper had begun: its agent is frozen already."""
        self.shift = self._new_shift(engine)
        self._end_in_background()

    def _go_on(self, engine: Engine, job: Callable[[Engine], Awaitable[None]]) -> None:
        """Take up in the background what an earlier keeper had begun with its machine."""
        work = self._bring_to_an_end(partial(self._or_stop, engine, job))
        self._begun = asyncio.get_running_loop().create_task(work)

    async def _or_stop(self, engine: Engine, job: Callable[[Engine], Awaitable[None]]) -> None:
        try:
            await job(engine)
        except BaseException:
            await engine.stop()
            raise

    async def _await_guest(self, engine: Engine) -> None:
        await engine.answer(ADOPT_S)
        self.work_on(engine)

    def begin(self, *, agent: bool = True) -> None:
        """Start the machine in the background. Raises AppError `busy` when there is one."""
        self._refuse_second()
        self.ledger.change(
            state="starting",
            agent_state="starting",
            waits="",
            message="",
            exit_code=None,
            maintenance=not agent,
            agent_started=0.0,
            agent_ended=0.0,
        )
        reached("start.begun")
        work = self._bring_to_an_end(partial(self._start, agent))
        self._begun = asyncio.get_running_loop().create_task(work)

    def _refuse_second(self) -> None:
        state = self.ledger.state
        living = state.machine is not None and state.machine.alive
        if self.busy or living:
            raise AppError(
                "busy",
                f"The session {self.record.id} is {state.state}.",
                f"Stop it first: cloche stop {self.record.id}",
            )

    async def _start(self, agent: bool) -> None:
        engine = await self._starter.start(agent=agent)
        await self._or_stop(engine, self._start_agent if agent else self._read_disk)

    async def _bring_to_an_end(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do what a start consists of; however it ends, the session's state says so."""
        async with self._life:
            try:
                await work()
            except asyncio.CancelledError:
                self._memory.leave()
                await self.network.stop()
                message = "The start was called off."
                self.ledger.change(state="stopped", machine=None, message=message)
                raise
            except Exception as error:  # whatever it is, the session must say that it failed
                self._memory.leave()
                await self.network.stop()
                self.ledger.fail(error)

    async def _start_agent(self, engine: Engine) -> None:
        self._terminal.clear_up()
        if self.pane is not None:
            await self.pane.ended(None)
        shift = self._new_shift(engine)
        await shift.start_agent()
        self._work(shift)

    async def _read_disk(self, engine: Engine) -> None:
        self.ledger.change(state="running")
        reached("read.running")
        await self._new_shift(engine).take()
        reached("read.taken")
        await engine.stop()
        reached("read.ended")
        self.ledger.change(state="stopped", agent_state="idle", machine=None)
        await self.show_end()

    def _new_shift(self, engine: Engine) -> Shift:
        return Shift(self.ledger, self.tree, engine, self._terminal, self.pane, self.network)

    def _work(self, shift: Shift, *, adopted: bool = False) -> None:
        self.shift = shift
        shift.go(adopted=adopted)
        self._guard = asyncio.get_running_loop().create_task(self._end.watch(shift))

    async def show_end(self) -> None:
        """Tell the terminal's clients that there is no agent (any more)."""
        if self.pane is not None:
            code = self.ledger.state.exit_code
            await self.pane.ended(code if code is not None else -1)

    async def refresh(self) -> None:
        """Take a mirror pass now where there is a machine; read a lost session's disk."""
        if self.shift is not None:
            if not self.shift.still:  # such a machine answers nothing
                await self.shift.take()
        elif self.ledger.state.state == "lost" and not self.busy:
            await self._memory.enter(READ_WAIT_S)
            self.begin(agent=False)
            await self.settled()

    async def resume(self, *, agent: bool = True, patience_s: float | None = None) -> None:
        """Let a machine go on that stands still; start the agent where it has ended; else `begin`.

        `patience_s`: how long a start may wait for memory.
        """
        if self._waker.deaf is not None:
            await self._waker.wake_deaf()
            if self.shift is not None:
                return
        elif self.shift is not None and self.shift.still:
            await self.shift.go_on()
            return
        elif agent and self.shift is not None and self._agent_is_over:
            await self._start_again()
            return
        self._refuse_second()
        await self._memory.enter(patience_s)  # a refusal leaves the session as it was
        self.begin(agent=agent)

    @property
    def _agent_is_over(self) -> bool:
        state = self.ledger.state
        return state.state == "running" and state.exit_code is not None

    async def _start_again(self) -> None:
        """Start the agent again, whether whoever asked stays or not; a stop calls it off."""
        begun = self._begun
        if begun is None or begun.done():
            begun = asyncio.get_running_loop().create_task(self._in_its_machine())
            begun.add_done_callback(looked_at)
            self._begun = begun
        await asyncio.wait([begun])
        if begun.cancelled():
            raise AppError("busy", "The start was called off.", "See: cloche ps")
        begun.result()

    async def _in_its_machine(self) -> None:
        async with self._life:
            shift = self._running()  # it may have been stopped meanwhile
            if self._agent_is_over:
                await shift.start_again()

    async def settled(self) -> None:
        """Wait until a start that was begun has come to its end."""
        if self._begun is not None:
            await asyncio.gather(self._begun, return_exceptions=True)

    async def freeze(self, on: bool) -> int:
        """Freeze (and mirror) or thaw the agent; the generation. AppError without a machine."""
        shift = self._running()
        shift.check()
        await (shift.take(freeze=True) if on else shift.thaw())
        return self.tree.generation

    async def stop(self) -> None:
        """Freeze, mirror for the last time, end the machine. Raises NotStopped when it lives on.

        It goes on without whoever asked: a client that hangs up in the middle must not leave a
        session that is neither running nor stopped.
        """
        if self._ending is None or self._ending.done():
            self._end_in_background()
        if self._ending is not None:
            await asyncio.shield(self._ending)

    def _end_in_background(self) -> None:
        self._ending = asyncio.get_running_loop().create_task(self._stop())
        self._ending.add_done_callback(looked_at)

    async def _stop(self) -> None:
        await self._waker.end_deaf()
        await self._call_off()
        async with self._life:
            if self.shift is not None:
                await self._end.stop(self.shift)

    async def _call_off(self) -> None:
        """Break a start off, and wait until it has cleaned up."""
        if self._begun is not None and not self._begun.done():
            await asyncio.sleep(0)  # a task that is cancelled before it began cleans nothing up
            self._begun.cancel()
            await self.settled()

    async def close(self) -> None:
        """Let go of everything; a machine runs on."""
        await self._waker.close()
        tasks = (self._begun, self._guard, self._ending)
        await end_tasks([task for task in tasks if task is not None])
        if self.shift is not None:
            await self.shift.end()
            await self.shift.engine.let_go()
        await self.network.stop()
        await self.tree.close()
        self.ledger.journal.close()
