"""What goes on while a machine runs: its agent is carried, its changes are mirrored."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Final

from app.errors import AppError, app_error, is_full, naming
from app.keeper.agent_terminal import AgentTerminal
from app.keeper.attention import Attention
from app.keeper.forwards import Forwards
from app.keeper.guest_clock import GuestClock
from app.keeper.pulse import Pulse
from app.keeper.room import Room
from app.keeper.stalling import Stalling
from app.keeper.threads import end_tasks
from snapshot.errors import SnapshotError
from vm.errors import GuestProtocol, LinkLost, VMError
from vm.machine.bulk import GuestError
from vm.steps import reached

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from app.keeper.engine import Engine
    from app.keeper.ledger import Ledger
    from app.keeper.network import GuestNetwork
    from app.keeper.pane import PaneServer
    from app.keeper.terminal_record import TerminalRecord
    from app.keeper.tree import Tree

log = logging.getLogger(__name__)

BUSY_PASS_S: Final = 0.5
"""Pause between mirror passes while files change, in seconds."""

IDLE_PASS_S: Final = 2.0
ADOPT_RETRY_S: Final = 1.0
QUIET_STATES: Final = ("working", "idle", "waiting", "stalled")
"""States of a running agent that its silence decides."""

LAST_PASS_S: Final = 150.0
"""Longest last mirror pass of a stop, in seconds: gigabytes under emulation take a minute."""

SERVED_S: Final = 30.0
"""Longest that a program's start waits for a network that is taken up, in seconds."""

ONLY_ON_DISK: Final = "The last changes are only on the session's disk:"


class Shift:
    """The work on one running machine, from its agent's start to its end."""

    def __init__(
        self,
        ledger: Ledger,
        tree: Tree,
        engine: Engine,
        terminal: TerminalRecord,
        pane: PaneServer | None,
        network: GuestNetwork | None = None,
    ) -> None:
        self.engine = engine
        self._ledger = ledger
        self._tree = tree
        self._pane = pane
        self._network = network
        self._served = asyncio.Event()
        self._served.set()
        self.room = Room(ledger, engine.machine)
        self.pulse = Pulse(ledger, engine.machine, self.room)
        self.clock = GuestClock(engine.links, engine.machine, lambda: self.still)
        self.forwards = Forwards(ledger.folder, engine.links)
        self._terminal = terminal
        self.agent = self._new_agent()
        asked = time.monotonic() if ledger.state.agent_state == "waiting" else 0.0
        self._attention = Attention(terminal.asks, asked)
        self._stalling = Stalling(ledger.record.agent.stalled_s)
        self._fault = ""
        self._tasks: list[asyncio.Task[None]] = []

    def _new_agent(self) -> AgentTerminal:
        links, record = self.engine.links, self._ledger.record
        services = self._network.broker.env if self._network is not None else None
        agent = AgentTerminal(record, self._terminal, links, services)
        agent.server = self._pane
        return agent

    async def start_again(self) -> None:
        """Start the agent anew in a machine where it has ended; raises as `start_agent`.

        A keeper that is killed on the way leaves what the next one takes for a start of its own.
        """
        before = self._ledger.state
        over = {"exit_code": before.exit_code, "agent_ended": before.agent_ended}
        self.agent = self._new_agent()
        self._ledger.change(exit_code=None, agent_state="starting", agent_started=0.0)
        self._terminal.clear_up()
        await self._say_end(None)
        try:
            await self.start_agent()
        except Exception:  # whatever it was, the session stays as it stood, and it is raised
            self._ledger.change(
                **over, agent_state=before.agent_state, agent_started=before.agent_started
            )
            await self._say_end(before.exit_code)
            raise
        self._begin(self._carry(adopted=False))

    async def start_agent(self) -> None:
        """Start the agent in a machine that has just booted."""
        await self.clock.try_to_set()  # before the agent looks at it
        await self.agent.start()
        reached("boot.agent")
        self._ledger.change(
            state="running",
            agent_state="working",
            agent_started=time.time(),
            agent_ended=0.0,
            message="",
        )
        reached("boot.running")

    def go(self, *, adopted: bool = False) -> None:
        """Begin to carry and to mirror; with `adopted` find out first where things stand."""
        self._served.clear()
        jobs = (
            self.room.watch(),
            self.pulse.watch(),
            self.clock.watch(),
            self.engine.links.watch(lambda: self.still),
            self._serve_network(),
            self._mirror(),
            self._carry(adopted),
            self.forwards.restore(),
        )
        for job in jobs:
            self._begin(job)

    def _begin(self, job: Coroutine[object, object, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(logged(job)))

    async def end(self) -> None:
        """Stop carrying and mirroring; the machine is not touched."""
        await end_tasks(self._tasks)
        self._tasks.clear()
        if self._network is not None:
            await self._network.stop()
        await self.forwards.close()

    async def _serve_network(self) -> None:
        """Serve the card of a machine whose network an earlier keeper served."""
        try:
            if self._network is not None:
                await self._network.take_up(self.engine.machine.spec.network_socket)
        finally:
            self._served.set()

    async def served(self) -> None:
        """Return when network and broker serve the machine, after SERVED_S in any case.

        A program that starts before that in an adopted machine is not given the addresses of its
        services.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SERVED_S):
                await self._served.wait()

    async def take(self, *, freeze: bool = False) -> bool:
        """Do one mirror pass and tell about a new generation."""
        reached("pass.begun")
        changed = await self._tree.take(self.engine.links, freeze=freeze)
        if changed:
            reached("pass.taken")
            self._ledger.change(
                generation=self._tree.generation,
                changes=self._tree.counts,
                open_units=await self._tree.open_units(),
            )
            self._ledger.tell("changes")
            reached("pass.told")
        return changed

    async def take_last(self) -> str:
        """Take the final generation of a machine that is to end; what went wrong, or nothing."""
        try:
            if self.room.lacking:
                return f"{ONLY_ON_DISK} the host's disk is full."
            self.pulse.wake()
            async with asyncio.timeout(LAST_PASS_S):
                await self.pulse.unless_silent(self.take(freeze=True))
        except TimeoutError:
            return f"{ONLY_ON_DISK} {LAST_PASS_S:g} s were not enough to read them."
        except (VMError, SnapshotError, OSError) as error:
            known = app_error(error)
            reason = known.message if known else str(error)
            log.warning("the last mirror pass failed: %s", reason)
            return f"{ONLY_ON_DISK} {reason}"
        return ""

    @property
    def still(self) -> bool:
        """Whether the machine stands still: no room on the host, or its process was stopped."""
        return self.room.lacking or self.pulse.silent

    async def go_on(self) -> None:
        """Let a machine that stands still go on. Raises AppError where it cannot yet."""
        if self.pulse.silent:
            self.pulse.wake()
        else:
            await self.room.go_on()

    def check(self) -> None:
        """Raise AppError where the machine stands still, so that nothing is asked in vain."""
        self.pulse.check()
        if self.room.lacking:
            state = self._ledger.state
            raise AppError("paused", state.message, state.hint)

    async def thaw(self) -> None:
        """Let a frozen agent go on. Raises LinkLost."""
        async with self.engine.links.bulk_lock:
            await (await self.engine.links.bulk()).thaw()

    async def _mirror(self) -> None:
        pause = BUSY_PASS_S
        while True:
            await self.room.there()
            try:
                changed = await self.take()
                pause = BUSY_PASS_S if changed else min(IDLE_PASS_S, pause * 1.5)
                self._tell_fault(None)
            except (VMError, SnapshotError, OSError) as error:
                pause = IDLE_PASS_S
                self._tell_fault(error)
            await self._note_quiet()
            await asyncio.sleep(pause)

    def _tell_fault(self, error: Exception | None) -> None:
        """Tell about a pass that failed, once; and that the next one did not."""
        known = self._known(error) if error is not None and not self.still else None
        sentence = known.message if known else ""
        if sentence == self._fault:
            return
        self._fault = sentence
        log.warning("mirror: %s", sentence or "works again")
        message = f"Changes are not mirrored: {sentence}" if sentence else ""
        self._ledger.change(message=message, hint=known.hint if known else "")

    def _known(self, error: Exception) -> AppError | None:
        if isinstance(error, OSError) and is_full(error):  # a write does not say where it failed
            folder = self._ledger.folder
            return AppError(
                "disk-full", f"The disk of {folder} is full.", f"Free some space: df -h '{folder}'"
            )
        known = app_error(error)
        return None if known is None else naming(known, self._ledger.record.id)

    async def _note_quiet(self) -> None:
        if self._ledger.state.agent_state not in QUIET_STATES or self.still:
            return
        await self._look_at_agent()
        now, said = time.monotonic(), self.agent.last_output
        stalled = self._stalling.stalled(max(said, self._attention.typed))
        self._attention.redrawn = self.agent.redrawn
        state = self._attention.look(now, self._terminal.asks, said, stalled=stalled)
        if self._ledger.state.agent_state in QUIET_STATES:  # it may have ended meanwhile
            self._ledger.change(agent_state=state)

    async def _look_at_agent(self) -> None:
        """Ask the guest what a silent agent is busy with, when it is time."""
        now, links = time.monotonic(), self.engine.links
        if not self._stalling.due(now, max(self.agent.last_output, self._attention.typed)):
            return
        async with links.bulk_lock:
            try:
                self._stalling.take(now, await (await links.bulk()).activity())
            except GuestError as error:
                log.info("whether the agent hangs stays unknown: %s", error.message)
                self._stalling.bound_s = 0  # an image of an earlier Cloche, which will not learn
            except VMError as error:
                log.info("the guest does not say what the agent does: %s", error.message)
                await links.drop_bulk()

    def typed(self) -> None:
        """Note that somebody types into the agent's terminal: it waits no longer."""
        self._attention.typed = time.monotonic()

    async def _carry(self, adopted: bool) -> None:
        if adopted:
            await self._find_agent()
            self._ledger.change(state="running")
        if self._ledger.state.exit_code is not None:
            return
        status = await self.agent.run()
        self._ledger.change(
            agent_state="done" if status == 0 else "failed",
            exit_code=status,
            agent_ended=time.time(),
        )
        await self._say_end(status)

    async def _say_end(self, status: int | None) -> None:
        """Tell the terminal's clients that the agent has ended, or (None) that a new one begins."""
        if self._pane is not None:
            await self._pane.ended(status)

    async def _find_agent(self) -> None:
        """Reach the guest of an adopted machine; start its agent if nobody came to that."""
        while True:
            try:
                await self.engine.links.ssh()
                await self._know_agent()
                await self.thaw()  # whoever had it frozen is gone
                return
            except (LinkLost, GuestProtocol) as error:
                log.info("the adopted guest does not answer yet: %s", error.message)
                await asyncio.sleep(ADOPT_RETRY_S)

    async def _know_agent(self) -> None:
        """Start the agent unless an earlier keeper did, whether that was noted or not."""
        if self._ledger.state.agent_started:
            return
        if await self.agent.known():
            self._ledger.change(agent_state="working", agent_started=time.time())
        else:
            await self.start_agent()


async def logged(job: Coroutine[object, object, None]) -> None:
    """Do a job that ends with its task; what ends it before is written down."""
    try:
        await job
    except Exception:  # a loop that dies silently would leave a session that looks alive
        log.exception("a part of the keeper failed")
