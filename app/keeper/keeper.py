"""The keeper: owns one session from its first byte to its removal.

It holds no truth of its own: every fact is on disk before a client hears of it, so a keeper may be
killed at any moment and the next one goes on (a machine that still runs is adopted).
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from app.errors import AppError, app_error, not_running
from app.keeper.boot import Workshop
from app.keeper.commits import Commits
from app.keeper.engine import boot_guest, start_machine
from app.keeper.governor import READ_WAIT_S, Governor
from app.keeper.ledger import Ledger
from app.keeper.network import GuestNetwork
from app.keeper.shift import Shift
from app.keeper.threads import end_tasks, looked_at
from app.keeper.tree import Tree
from app.keeper.waking import Waker
from app.records import LOST, Process, lost_hint
from vm.errors import NotStopped
from vm.machine.jail_check import OPEN
from vm.steps import reached

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from app.keeper.agent_terminal import AgentTerminal
    from app.keeper.engine import Engine
    from app.keeper.forwards import Forwards
    from app.keeper.links import Links
    from app.keeper.pane import PaneServer
    from app.keeper.terminal_record import TerminalRecord
    from app.paths import Paths
    from vm.machine.jail import Jail

log = logging.getLogger(__name__)

ADOPT_S: Final = 120.0
"""Seconds in which the guest of an adopted machine that was starting must answer."""

FRESH_SCREEN: Final = b"\x1b[!p\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?2004l\x1b[m\r\n"
"""Undoes what the program of an earlier boot left switched on, before the next one writes."""


class Keeper:
    """One session's owner. All methods run on one event loop."""

    def __init__(self, paths: Paths, folder: Path, terminal: TerminalRecord) -> None:
        self.ledger = Ledger(folder)
        self.record = self.ledger.record
        self.tree = Tree(self.record, folder)
        self.network = GuestNetwork(paths, self.ledger)
        self.commits = Commits(self.record, folder)
        self.pane: PaneServer | None = None
        self._machine_sockets = paths.machine_sockets(self.record.id)
        self._terminal = terminal
        self._workshop = Workshop(paths, self.record, folder)
        self._memory = Governor(paths, self.ledger)
        self._waker = Waker(self.ledger, self.tree, self._workshop, self)
        self._life = asyncio.Lock()
        self._begun: asyncio.Task[None] | None = None
        self._shift: Shift | None = None
        self._guard: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    @property
    def engine(self) -> Engine | None:
        """The running machine and its links."""
        return self._shift.engine if self._shift is not None else None

    @property
    def agent(self) -> AgentTerminal | None:
        """The terminal of the running agent."""
        return self._shift.agent if self._shift is not None else None

    @property
    def world_env(self) -> dict[str, str]:
        """The variables of every program in the guest: of image, network and broker."""
        return {**self.record.world_env, **self.network.broker.env}

    def typed(self) -> None:
        """Note that somebody types into the agent's terminal."""
        if self._shift is not None:
            self._shift.typed()

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
        if self._shift is None:
            state = self.ledger.state
            raise not_running(self.record.id, state.state, state.message, state.hint)
        return self._shift

    @property
    def busy(self) -> bool:
        """Whether there is a machine, or one is being started or ended."""
        begun = self._begun is not None and not self._begun.done()
        machine = self._shift is not None or self._waker.deaf is not None
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
        """Carry and mirror a machine that an earlier keeper had started."""
        self._work(self._new_shift(engine), adopted=True)

    def stop_on(self, engine: Engine) -> None:
        """Go on with a stop that an earlier keeper had begun: its agent is frozen already."""
        self._shift = self._new_shift(engine)
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
        if agent:
            await self.network.prepare()
        await self._memory.enter()
        jail = await self._jail()
        await self._prepare()
        await self._memory.granted()
        await self._boot(agent, jail)

    async def _jail(self) -> Jail | None:
        """Find QEMU's jail and say at every start when there is none. Raises NoJail."""
        choice = await self._workshop.jail()
        others = tuple(text for text in self.ledger.state.notices if not text.startswith(OPEN))
        notices = (choice.notice, *others) if choice.notice else others
        self.ledger.change(jail="on" if choice.jail else "off", notices=notices)
        return choice.jail

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

    async def _prepare(self) -> None:
        if not self.ledger.state.prepared:
            notices = await self._workshop.prepare()
            self.ledger.change(prepared=True, notices=(*self.ledger.state.notices, *notices))
            reached("start.prepared")
        await self.tree.open()

    async def _boot(self, agent: bool, jail: Jail | None) -> None:
        machinery = await self._workshop.machinery(jail, network=agent and self.network.on)
        reached("boot.machinery")
        machine = await start_machine(machinery)
        reached("boot.answers")
        notices = self.ledger.state.notices
        if machinery.notice and machinery.notice not in notices:
            notices = (*notices, machinery.notice)
        self.ledger.change(
            machine=Process.here(machine.pid, machine.start_time),
            accelerator=machinery.spec.accelerator,
            notices=notices,
        )
        self._memory.hold(Process.here(machine.pid, machine.start_time))
        reached("boot.noted")
        if agent:
            self.network.start(machine.spec.network_socket)
        engine = await boot_guest(machine, machinery)
        reached("boot.guest")
        self.ledger.change(boot_ms=engine.boot_ms)
        await self._or_stop(engine, self._start_agent if agent else self._read_disk)

    async def _start_agent(self, engine: Engine) -> None:
        if self._terminal.end:
            self._terminal.append(FRESH_SCREEN)
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
        self._shift = shift
        shift.go(adopted=adopted)
        self._guard = asyncio.get_running_loop().create_task(self._watch_exit(shift))

    async def _watch_exit(self, shift: Shift) -> None:
        await shift.engine.machine.wait_exit()
        if self._shift is not shift or self.ledger.state.state == "stopping":
            return
        ended = self.ledger.state.exit_code is not None
        self.ledger.change(
            state="lost",
            agent_state=self.ledger.state.agent_state if ended else "failed",
            machine=None,
            message=LOST,
            hint=lost_hint(self.record.id),
        )
        await shift.end()
        await shift.engine.let_go()
        self._shift = None
        await self.show_end()

    async def show_end(self) -> None:
        """Tell the terminal's clients that there is no agent (any more)."""
        if self.pane is not None:
            code = self.ledger.state.exit_code
            await self.pane.ended(code if code is not None else -1)

    async def refresh(self) -> None:
        """Take a mirror pass now where there is a machine; read a lost session's disk."""
        if self._shift is not None:
            if not self._shift.still:  # such a machine answers nothing
                await self._shift.take()
        elif self.ledger.state.state == "lost" and not self.busy:
            await self._memory.enter(READ_WAIT_S)
            self.begin(agent=False)
            await self.settled()

    async def resume(self, *, agent: bool = True, patience_s: float | None = None) -> None:
        """Let a machine go on that lacks room, else `begin`, with so much patience for memory."""
        if self._waker.deaf is not None:
            await self._waker.wake_deaf()
            if self._shift is not None:
                return
        elif self._shift is not None and self._shift.still:
            await self._shift.go_on()
            return
        self._refuse_second()
        await self._memory.enter(patience_s)  # a refusal leaves the session as it was
        self.begin(agent=agent)

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
        if self._begun is not None and not self._begun.done():
            await asyncio.sleep(0)  # a task that is cancelled before it began cleans nothing up
            self._begun.cancel()
            await self.settled()
        async with self._life:
            shift = self._shift
            if shift is None:
                return
            self.ledger.change(state="stopping", message="")
            reached("stop.begun")
            try:
                message = await shift.take_last()
                reached("stop.mirrored")
                await shift.end()
                await shift.engine.stop(asked=not shift.pulse.silent)
                reached("stop.ended")
            except BaseException as error:  # whatever it is, the session must not stay "stopping"
                await self._not_stopped(shift, error)
                raise
            self._shift = None
            ended = self.ledger.state.exit_code is not None
            self.ledger.change(
                state="stopped",
                agent_state=self.ledger.state.agent_state if ended else "idle",
                machine=None,
                message=message,
                hint=f"Read it: cloche resume {self.record.id} --no-agent" if message else "",
            )
            reached("stop.written")
            await self.show_end()

    async def _not_stopped(self, shift: Shift, error: BaseException) -> None:
        """Go on with a machine that lives on; say of one that ended that it is lost."""
        if not isinstance(error, NotStopped) and not shift.engine.machine.running:
            hint = lost_hint(self.record.id)
            self.ledger.change(state="lost", machine=None, message=LOST, hint=hint)
            self._shift = None
            await shift.end()
            await shift.engine.let_go()
            await self.show_end()
            return
        known = app_error(error)
        message = known.message if known else "The stop was broken off by a fault."
        hint = f"Stop it again: cloche stop {self.record.id}"
        self.ledger.change(state="running", message=message, hint=hint)
        if not isinstance(error, asyncio.CancelledError):  # else the next keeper goes on with it
            await shift.end()
            self._work(self._new_shift(shift.engine), adopted=True)

    async def close(self) -> None:
        """Let go of everything; a machine runs on."""
        await self._waker.close()
        tasks = (self._begun, self._guard, self._ending)
        await end_tasks([task for task in tasks if task is not None])
        if self._shift is not None:
            await self._shift.end()
            await self._shift.engine.let_go()
        await self.network.stop()
        await self.tree.close()
        self.ledger.journal.close()
