"""The keeper: owns one session from its first byte to its removal.

It holds no truth of its own: every fact is on disk before a client hears of it, so a keeper may be
killed at any moment and the next one goes on (a machine that still runs is adopted).
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

import msgspec

from app.errors import AppError, app_error
from app.keeper.agent_terminal import AgentTerminal
from app.keeper.boot import Workshop
from app.keeper.engine import adopt, boot_guest, orphan, start_machine
from app.keeper.events import Events
from app.keeper.journal import Journal
from app.keeper.tree import Tree
from app.records import (
    Process,
    read_session,
    read_state,
    session_info,
    truth,
    write_record,
)
from snapshot.errors import SnapshotError
from vm.errors import LinkLost, NotStopped, VMError
from vm.machine import guest_exec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from pathlib import Path

    from app.keeper.engine import Engine
    from app.keeper.pane import PaneServer
    from app.keeper.terminal_record import TerminalRecord
    from app.paths import Paths
    from app.protocol import Event, SessionInfo

log = logging.getLogger(__name__)

BUSY_PASS_S: Final = 0.5
"""Pause between mirror passes while files change, in seconds."""

IDLE_PASS_S: Final = 2.0
QUIET_S: Final = 10.0
"""Seconds without output after which a running agent counts as idle."""

ADOPT_RETRY_S: Final = 1.0

RESUMABLE: Final = frozenset({"stopped", "failed", "lost"})

FRESH_SCREEN: Final = b"\x1b[!p\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?2004l\x1b[m\r\n"
"""Undoes what the program of an earlier boot left switched on, before the next one writes."""


class Keeper:
    """One session's owner. All methods run on one event loop."""

    def __init__(self, paths: Paths, folder: Path, terminal: TerminalRecord) -> None:
        self.record = read_session(folder)
        self.state = read_state(folder)
        self.tree = Tree(self.record, folder)
        self.engine: Engine | None = None
        self.agent: AgentTerminal | None = None
        self.pane: PaneServer | None = None
        self._folder = folder
        self._sockets = paths.sockets(self.record.id)
        self._terminal = terminal
        self._journal = Journal(folder)
        self._workshop = Workshop(paths, self.record, folder)
        self._events = Events(self.info)
        self._life = asyncio.Lock()
        self._begun: asyncio.Task[None] | None = None
        self._running: list[asyncio.Task[None]] = []

    def info(self) -> SessionInfo:
        """Return the session as it is now."""
        return session_info(self.record, self.state)

    def events(self) -> AsyncIterator[Event]:
        """Yield what happens from now on."""
        return self._events.subscribe()

    def tell(self, *kinds: str) -> None:
        """Tell the subscribers that something happened that changed no state."""
        self._events.tell(*kinds)

    @property
    def busy(self) -> bool:
        """Whether there is a machine, or one is being started or ended."""
        begun = self._begun is not None and not self._begun.done()
        return self.engine is not None or begun or self._life.locked()

    def change(self, **fields: object) -> None:
        """Change the state: on disk first, then for everybody who listens."""
        before = self.state
        self.state = msgspec.structs.replace(before, **fields)
        if self.state == before:
            return
        write_record(self._folder / "state.json", self.state)
        if self.state.state != before.state:
            self._journal.write(self.state.state, self.state.message)
        self._events.tell("session")

    async def wake(self) -> None:
        """Find out how things are: adopt a running machine, or say what became of it."""
        if self.state.prepared:
            await self.tree.open()
        known = self.state.machine
        process = known if known is not None and known.alive else None
        process = process or await orphan(self._sockets / "qmp.sock")
        if process is not None:
            await self._adopt(process)
            return
        found = truth(self._folder, self.state)
        if found.state == "starting":
            found = msgspec.structs.replace(
                found, state="failed", message="Cloche was ended while the session started."
            )
        self.change(state=found.state, message=found.message, machine=None)
        await self._show_end()

    async def _adopt(self, process: Process) -> None:
        self._journal.write("adopt", f"process {process.pid}")
        self.change(machine=process)
        engine = await adopt(self._workshop, process, self.state.accelerator or "tcg")
        if engine is None:
            self.change(state="lost", machine=None, message="The machine ended meanwhile.")
            return
        if not self.state.prepared:  # its keeper was killed before anything was in it
            await engine.stop()
            self.change(state="failed", machine=None, message="The start was interrupted.")
            return
        self.engine = engine
        self._watch(adopted=True)

    def begin(self, *, agent: bool = True) -> None:
        """Start the machine in the background. Raises AppError `busy` when there is one."""
        if self.busy or (self.state.state not in RESUMABLE and self.state.machine is not None):
            raise AppError(
                "busy",
                f"The session {self.record.id} is {self.state.state}.",
                f"Stop it first: cloche stop {self.record.id}",
            )
        self.change(
            state="starting",
            agent_state="starting",
            message="",
            exit_code=None,
            maintenance=not agent,
            agent_started=0.0,
            agent_ended=0.0,
        )
        self._begun = asyncio.get_running_loop().create_task(self._begin(agent))

    async def _begin(self, agent: bool) -> None:
        async with self._life:
            try:
                await self._prepare()
                await self._boot(agent)
            except asyncio.CancelledError:
                self.change(state="stopped", machine=None, message="The start was called off.")
                raise
            except Exception as error:  # whatever it is, the session must say that it failed
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        known = app_error(error)
        if known is None:
            log.exception("the session failed by a fault of Cloche's own")
            known = AppError("internal", f"Cloche failed: {type(error).__name__}.")
        message = f"{known.message} {known.hint}".strip()
        log.error("the session failed: %s", message)
        self.change(state="failed", agent_state="failed", machine=None, message=message)

    async def _prepare(self) -> None:
        if not self.state.prepared:
            await self._workshop.prepare()
            self.change(prepared=True)
        await self.tree.open()

    async def _boot(self, agent: bool) -> None:
        machinery = await self._workshop.machinery()
        machine = await start_machine(machinery)
        self.change(
            machine=Process(machine.pid, machine.start_time),
            accelerator=machinery.spec.accelerator,
        )
        if machinery.notice:
            self._journal.write("notice", machinery.notice)
        engine = await boot_guest(machine, machinery)
        self.change(boot_ms=engine.boot_ms)
        try:
            await self._work(engine, agent)
        except BaseException:
            await engine.stop()
            raise

    async def _work(self, engine: Engine, agent: bool) -> None:
        if not agent:
            self.change(state="running")
            await self._take(engine)
            await engine.stop()
            self.change(state="stopped", agent_state="idle", machine=None)
            await self._show_end()
            return
        if self._terminal.end:
            self._terminal.append(FRESH_SCREEN)
        if self.pane is not None:
            await self.pane.ended(None)
        await self._new_agent(engine).start()
        self.change(state="running", agent_state="working", agent_started=time.time())
        self.engine = engine
        self._watch()

    def _new_agent(self, engine: Engine) -> AgentTerminal:
        self.agent = AgentTerminal(self.record, self._terminal, engine.links)
        self.agent.server = self.pane
        return self.agent

    def _watch(self, *, adopted: bool = False) -> None:
        engine = self.engine
        if engine is None:
            return
        self.change(state="running")
        work = [self._watch_exit(engine), self._mirror(engine), self._carry(engine, adopted)]
        self._running = [asyncio.get_running_loop().create_task(_logged(job)) for job in work]

    async def _watch_exit(self, engine: Engine) -> None:
        await engine.machine.wait_exit()
        if self.engine is not engine or self.state.state == "stopping":
            return
        self.engine = None
        self._cancel_running(asyncio.current_task())
        await engine.let_go()
        self.change(
            state="lost",
            agent_state="failed" if self.state.exit_code is None else self.state.agent_state,
            machine=None,
            message="The machine ended without being told to.",
        )
        await self._show_end()

    async def _show_end(self) -> None:
        if self.pane is not None:
            code = self.state.exit_code
            await self.pane.ended(code if code is not None else -1)

    def _cancel_running(self, but: asyncio.Task[None] | None = None) -> None:
        for task in self._running:
            if task is not but:
                task.cancel()

    async def _mirror(self, engine: Engine) -> None:
        pause = BUSY_PASS_S
        while True:
            try:
                changed = await self._take(engine)
                pause = BUSY_PASS_S if changed else min(IDLE_PASS_S, pause * 1.5)
            except (VMError, SnapshotError) as error:
                log.warning("a mirror pass failed: %s", error.message)
                pause = IDLE_PASS_S
            self._note_quiet()
            await asyncio.sleep(pause)

    async def _take(self, engine: Engine, *, freeze: bool = False) -> bool:
        changed = await self.tree.take(engine.links, freeze=freeze)
        if changed:
            self.change(generation=self.tree.generation, changes=self.tree.counts)
            self._events.tell("changes")
        return changed

    def _note_quiet(self) -> None:
        if self.agent is not None and self.state.agent_state in ("working", "idle"):
            quiet = time.monotonic() - self.agent.last_output > QUIET_S
            self.change(agent_state="idle" if quiet else "working")

    async def _carry(self, engine: Engine, adopted: bool) -> None:
        if adopted and self.state.exit_code is not None:
            return
        agent = self._new_agent(engine) if adopted or self.agent is None else self.agent
        if adopted:
            await self._find_agent(engine, agent)
        status = await agent.run()
        self.change(
            agent_state="done" if status == 0 else "failed",
            exit_code=status,
            agent_ended=time.time(),
        )
        if self.pane is not None:
            await self.pane.ended(status)

    async def _find_agent(self, engine: Engine, agent: AgentTerminal) -> None:
        """Start the agent of an adopted machine if its keeper never came to that."""
        while True:
            try:
                ssh = await engine.links.ssh()
                if not self.state.agent_started and not await guest_exec.agent_running(ssh):
                    await agent.start()
                    self.change(agent_state="working", agent_started=time.time())
                return
            except LinkLost as error:
                log.info("the adopted guest does not answer yet: %s", error.message)
                await asyncio.sleep(ADOPT_RETRY_S)

    async def refresh(self) -> None:
        """Take a mirror pass now where there is a machine; read a lost session's disk."""
        if self.engine is not None:
            await self._take(self.engine)
        elif self.state.state == "lost" and not self.busy:
            self.begin(agent=False)
            await self.settled()

    async def settled(self) -> None:
        """Wait until a start that was begun has come to its end."""
        if self._begun is not None:
            await asyncio.gather(self._begun, return_exceptions=True)

    async def freeze(self, on: bool) -> int:
        """Freeze (and mirror) or thaw the agent; the generation. AppError without a machine."""
        engine = self.engine
        if engine is None:
            raise AppError("not-running", "The session has no machine.", "cloche resume ID")
        if on:
            await self._take(engine, freeze=True)
        else:
            async with engine.links.bulk_lock:
                await (await engine.links.bulk()).thaw()
        return self.tree.generation

    async def stop(self) -> None:
        """Freeze, mirror for the last time, end the machine. Raises NotStopped when it lives on."""
        if self._begun is not None and not self._begun.done():
            self._begun.cancel()
            await self.settled()
        async with self._life:
            engine = self.engine
            if engine is None:
                return
            self.change(state="stopping", message="")
            message = await self._last_pass(engine)
            self._cancel_running()
            await asyncio.gather(*self._running, return_exceptions=True)
            try:
                await engine.stop()
            except NotStopped as error:
                self.change(message=error.message)
                self._watch(adopted=True)
                raise
            self.engine = None
            ended = self.state.exit_code is not None
            self.change(
                state="stopped",
                agent_state=self.state.agent_state if ended else "idle",
                machine=None,
                message=message,
            )
            await self._show_end()

    async def _last_pass(self, engine: Engine) -> str:
        try:
            await self._take(engine, freeze=True)
        except (VMError, SnapshotError) as error:
            log.warning("the last mirror pass failed: %s", error.message)
            return (
                f"The last mirror pass failed ({error.message}); "
                f"read the disk with: cloche resume {self.record.id} --no-agent"
            )
        return ""

    async def close(self) -> None:
        """Let go of everything; a machine runs on."""
        if self._begun is not None:
            self._begun.cancel()
            await self.settled()
        self._cancel_running()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self.engine is not None:
            await self.engine.let_go()
        await self.tree.close()
        self._journal.close()


async def _logged(job: Coroutine[object, object, None]) -> None:
    try:
        await job
    except Exception:  # a loop that dies silently would leave a session that looks alive
        log.exception("a part of the keeper failed")
