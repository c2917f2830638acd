"""The agent of one session: its start, its terminal while it runs, and how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Final

from app.keeper.prompts import keys_of
from vm.errors import LinkLost, VMError
from vm.machine import guest_exec

if TYPE_CHECKING:
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

MAX_VANISHED: Final = 6
"""Looks that must find neither terminal nor status before the agent counts as killed."""

KILLED: Final = 137
"""Exit status of an agent that was killed with its holder: 128 + SIGKILL."""

ENVIRONMENT: Final = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}

EOF_NOTE: Final = b"\x1b[999H\r\n[EOF - dtach terminating]\r\n"
"""What dtach itself adds at the end; the agent did not print it."""

CLEAR: Final = b"\x1b[H\x1b[J"
"""What dtach prints first to whoever attaches; a page that the record holds must outlive it."""

GATE: Final = (
    'n=0; while [ "$(stty size 2>/dev/null)" = "0 0" ] && [ $n -lt 200 ]; '
    'do n=$((n+1)); sleep 0.05; done; exec "$@"'
)
"""Holds the agent back until we are attached, which is when its terminal gets a size: else its
first words would be lost, and all of them when it ends at once. Gives up after some ten seconds."""

WRITE_FILE: Final = 'umask 077; mkdir -p -- "$(dirname -- "$1")" && cat > "$1"'
"""Puts standard input into a file of the agent's world; the path is an argument, never text."""


async def first_words(terminal: Terminal) -> bytes:
    """Return what a newly attached terminal says first, without what dtach itself prints."""
    said = b""
    while len(said) < len(CLEAR) and CLEAR.startswith(said):
        data = await terminal.read()
        if not data:
            break
        said += data
    return said.removeprefix(CLEAR)


class AgentTerminal:
    """Pumps the agent's output into the record and input back; survives lost links."""

    def __init__(self, record: SessionRecord, terminal: TerminalRecord, links: Links) -> None:
        self._record = record
        self._terminal = terminal
        self._links = links
        self._attached: Terminal | None = None
        self._changed = asyncio.Event()
        self._over = False
        self.server: PaneServer | None = None
        self.last_output = time.monotonic()

    async def start(self) -> None:
        """Write the agent's helper files and start it under its terminal holder."""
        ssh = await self._links.ssh()
        agent = self._record.agent
        for path, text in agent.files.items():
            put = guest_exec.Command(("sh", "-c", WRITE_FILE, "sh", path), cwd="/")
            result = await guest_exec.run(ssh, put, stdin=text.encode())
            if result.exit_code != 0:
                said = result.stderr.decode(errors="replace").strip()[-200:]
                raise VMError(f"The agent's file {path} could not be written: {said}")
        command = guest_exec.Command(
            ("sh", "-c", GATE, "sh", *agent.command, *self._record.argv),
            env=ENVIRONMENT | agent.env,
            cgroup="agent",
        )
        await guest_exec.start_agent(ssh, command)

    async def run(self) -> int:
        """Carry the terminal until the agent has ended; its exit status. Cancel to let go."""
        try:
            return await self._run()
        finally:
            self._over = True
            self._changed.set()

    async def _run(self) -> int:
        vanished = 0
        while True:
            with contextlib.suppress(LinkLost):
                await self._carry()
            try:
                ssh = await self._links.ssh()
                running = await guest_exec.agent_running(ssh)
                status = await guest_exec.agent_status(ssh)
            except LinkLost as error:
                log.info("the guest does not answer: %s", error.message)
            else:
                if status is not None and not running:
                    return status
                # neither a terminal nor a status: whoever should have written it was killed
                vanished = 0 if running else vanished + 1
                if vanished > MAX_VANISHED:
                    return KILLED
            await asyncio.sleep(RETRY_S)

    async def _carry(self) -> None:
        ssh = await self._links.ssh()
        terminal = await guest_exec.attach(ssh, *self._terminal.size)
        self._attached = terminal
        self._changed.set()
        try:
            await self._take(await first_words(terminal))
            while data := await terminal.read():
                await self._take(data)
        finally:
            self._attached = None
            if not self._over:
                self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DETACH_S):
                    await terminal.close()

    async def _take(self, data: bytes) -> None:
        self.last_output = time.monotonic()
        self._terminal.append(data.replace(EOF_NOTE, b""))
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
            terminal.write(data)
            await terminal.drain()
        except LinkLost:
            return  # the pump sees the same loss and attaches again

    async def prompt(self, text: str) -> None:
        """Type a clean prompt and submit it, once and in one piece between all other input.

        Raises LinkLost without a terminal, and when nobody knows whether all of it arrived.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ATTACH_S):
                await self._changed.wait()
        terminal = self._attached
        if terminal is None:
            raise LinkLost("The agent's terminal does not answer; nothing was sent.")
        terminal.write(keys_of(text, pastes=self._terminal.marks_pastes))
        try:
            await terminal.drain()
        except LinkLost as error:
            text = "The link broke while the prompt was sent; look whether it arrived."
            raise LinkLost(text) from error

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal a new size and record it."""
        if (columns, rows) == self._terminal.size:
            return
        self._terminal.resize(columns, rows)
        if self._attached is not None:
            self._attached.resize(columns, rows)

    def repaint(self) -> None:
        """Make the program paint again: one row less and back, which no record keeps."""
        if self._attached is None:
            return
        columns, rows = self._terminal.size
        self._attached.resize(columns, max(1, rows - 1))
        self._attached.resize(columns, rows)
