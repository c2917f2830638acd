"""The agent of one session: its start, its terminal while it runs, and how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from typing import TYPE_CHECKING, Final

from app.keeper.prompts import keys_of
from vm.errors import GuestProtocol, LinkLost, VMError
from vm.machine import guest_exec
from vm.machine.held_terminal import end

if TYPE_CHECKING:
    from collections.abc import Mapping

    import asyncssh

    from app.keeper.links import Links
    from app.keeper.pane import PaneServer
    from app.keeper.terminal_record import TerminalRecord
    from app.records import SessionRecord
    from vm.machine.guest_exec import Terminal

log = logging.getLogger(__name__)

RETRY_S: Final = 0.5
"""Pause between two attempts to attach to a terminal whose link broke."""

DETACH_S: Final = 3.0

ATTACH_S: Final = 10.0
"""Seconds that input waits for a terminal whose link is being made anew; then it is dropped."""

TAKEN_S: Final = 12.0
"""Seconds in which the agent's terminal must have taken a prompt. It keeps 4 KiB of what its
program does not read yet, so only a long prompt needs a program that reads."""

KILLED: Final = 137
"""Exit status of an agent that was killed with its holder: 128 + SIGKILL."""

ENVIRONMENT: Final = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}

MISSING: Final = (
    "\x18\x1b\\\x1b[m\r\n[cloche: {:,} bytes of the output are missing here. While no keeper "
    "listened, more was printed than the guest keeps.]\r\n"
)
"""Stands in the record where output is lost; first it ends whatever sequence was cut off there."""

WRITE_FILE: Final = 'umask 077; mkdir -p -- "$(dirname -- "$1")" && cat > "$1"'
"""Puts standard input into a file of the agent's world; the path is an argument, never text."""

WRITE_FIRST: Final = f'[ -e "$1" ] || [ -L "$1" ] || {{ {WRITE_FILE}; }}'
"""The same where nothing is there yet."""


class NotSent(VMError):
    """A prompt that did not reach the agent, or of which nobody knows."""

    code = "not-sent"
    way_out = "Look whether some of it arrived: cloche attach ID --read-only"


class AgentTerminal:
    """Pumps the agent's output into the record and input back; survives lost links."""

    def __init__(
        self,
        record: SessionRecord,
        terminal: TerminalRecord,
        links: Links,
        services: Mapping[str, str] | None = None,
    ) -> None:
        """Carry a session's agent; `services` are the variables of its broker."""
        self._record = record
        self._terminal = terminal
        self._links = links
        self._services = services or {}
        self._attached: Terminal | None = None
        self._changed = asyncio.Event()
        self._over = False
        self._prompting = asyncio.Lock()
        self.server: PaneServer | None = None
        self.last_output = time.monotonic()
        self.redrawn = float("-inf")
        """When it was made to draw anew last, on the same clock."""

    async def start(self) -> None:
        """Write the agent's helper files and start it under its terminal holder."""
        ssh = await self._links.ssh()
        agent = self._record.agent
        for path, text, script in (
            *((path, text, WRITE_FILE) for path, text in agent.files.items()),
            *((path, text, WRITE_FIRST) for path, text in agent.first_files().items()),
        ):
            put = guest_exec.Command(("sh", "-c", script, "sh", path), cwd="/")
            result = await guest_exec.run(ssh, put, stdin=text.encode())
            if result.exit_code != 0:
                said = result.stderr.decode(errors="replace").strip()[-200:]
                raise VMError(f"The agent's file {path} could not be written: {said}")
        command = guest_exec.Command(
            agent.argv(self._record.id, self._record.argv),
            env=agent.variables({**ENVIRONMENT, **self._record.world_env, **self._services}),
            cgroup="agent",
        )
        # on disk before there is anything to record: a keeper killed now leaves no doubt
        self._terminal.begin_run(1 + secrets.randbelow(1 << 62))
        await guest_exec.start_agent(ssh, command, self._terminal.run, *self._terminal.size)

    async def known(self) -> bool:
        """Tell whether the guest holds the terminal of the run that the record tells of.

        Raises LinkLost, GuestProtocol.
        """
        ssh = await self._links.ssh()
        try:
            terminal = await self._attach(ssh)
        except guest_exec.NoAgent:
            return False
        await end(terminal, DETACH_S)
        return True

    async def run(self) -> int:
        """Carry the terminal until the agent has ended; its exit status. Cancel to let go."""
        try:
            return await self._run()
        finally:
            self._over = True
            self._changed.set()

    async def _run(self) -> int:
        while True:
            try:
                return await self._carry()
            except guest_exec.NoAgent:
                return KILLED  # the machine never heard of this run
            except (LinkLost, GuestProtocol) as error:
                log.info("the terminal's link broke: %s", error.message)
            await asyncio.sleep(RETRY_S)

    async def _attach(self, ssh: asyncssh.SSHClientConnection) -> Terminal:
        record = self._terminal
        return await guest_exec.attach(ssh, record.run, record.count, *record.size)

    async def _carry(self) -> int:
        """Carry output until the agent's end; its status. Raises as `known`, and NoAgent."""
        ssh = await self._links.ssh()
        size = self._terminal.size
        terminal = await self._attach(ssh)
        self._attached = terminal
        if self._terminal.size != size:  # it was changed while nobody could be told
            terminal.resize(*self._terminal.size)
        self._changed.set()
        try:
            self._go_on_at(terminal)
            while data := await terminal.read():
                await self._take(data, terminal)
            return terminal.status if terminal.status is not None else KILLED
        finally:
            self._attached = None
            if not self._over:
                self._changed.clear()
            await end(terminal, DETACH_S)

    def _go_on_at(self, terminal: Terminal) -> None:
        """Take in where the output goes on: where the record ends, unless something is lost."""
        record = self._terminal
        if not record.run:  # a machine that came with its agent, as a fork does
            record.begin_run(terminal.run)
        missing = terminal.begun - record.count
        if missing > 0:
            record.append(MISSING.format(missing).encode(), printed=False)
        if missing:
            log.info("the output goes on at %d, not at %d", terminal.begun, record.count)
            record.go_to(terminal.begun)
            self.repaint()

    async def _take(self, data: bytes, terminal: Terminal) -> None:
        self.last_output = time.monotonic()
        self._terminal.append(data)
        terminal.recorded(self._terminal.count)
        if self.server is not None:
            await self.server.changed()
            await self.server.room()

    async def send(self, data: bytes) -> None:
        """Send input to the agent; without a terminal it waits for ATTACH_S, then it is dropped."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ATTACH_S):
                await self._changed.wait()
        terminal = self._attached
        if terminal is None:
            return
        try:
            await terminal.send(data)
        except LinkLost:
            return  # the pump sees the same loss and attaches again

    async def prompt(self, text: str) -> None:
        """Type a clean prompt and submit it, once and in one piece between all other input.

        Returns when the agent's terminal has taken all of it. Raises NotSent without a terminal,
        and when nobody knows whether all of it arrived.
        """
        async with self._prompting:
            await self._prompt(text)

    async def _prompt(self, text: str) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ATTACH_S):
                await self._changed.wait()
        terminal = self._attached
        if terminal is None:
            raise NotSent("The agent's terminal does not answer; nothing was sent.")
        try:
            async with asyncio.timeout(TAKEN_S):
                await terminal.deliver(keys_of(text, pastes=self._terminal.marks_pastes))
        except TimeoutError as error:
            text = f"The agent's program did not take the whole prompt within {TAKEN_S:g} s."
            raise NotSent(text) from error
        except LinkLost as error:
            raise NotSent("The link broke before the agent had taken the whole prompt.") from error

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal a new size and record it."""
        if (columns, rows) == self._terminal.size:
            return
        self._terminal.resize(columns, rows)
        if self._attached is not None:
            self.redrawn = time.monotonic()
            self._attached.resize(columns, rows)

    def repaint(self) -> None:
        """Make the program paint again: one row less and back, which no record keeps."""
        if self._attached is None:
            return
        columns, rows = self._terminal.size
        self.redrawn = time.monotonic()
        self._attached.resize(columns, max(1, rows - 1))
        self._attached.resize(columns, rows)
