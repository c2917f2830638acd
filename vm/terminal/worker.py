"""The pane worker: a process that holds terminal engines inside a sandbox.

Started as `cloche.py _role pane-worker FD [CACHE]`: FD is one end of a socketpair to the screen,
CACHE the folder of the generated binding. The order is the point: load and warm up all code, close
the sandbox, say what holds (HELLO), and only then take connections and guests' bytes.
"""

from __future__ import annotations

import array
import contextlib
import os
import select
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from vm.errors import VMError
from vm.terminal import sandbox, wire
from vm.terminal.ghostty import VERSION, Ghostty
from vm.terminal.ghostty_engine import GhosttyEngine
from vm.terminal.wire import Down, Hello, Rate, Up, WireError
from vm.terminal.worker_commands import perform, unpack_palette, unpack_rate
from vm.terminal.worker_news import NEVER
from vm.terminal.worker_pane import WorkerPane
from vm.terminal.worker_warm import warm_up

if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTORS = 8
"""Open files besides the panes' connections."""

READ = 1 << 18
"""Bytes taken from the screen at once."""

MAX_COMMAND = wire.MAX_TEXT + 64
"""Longest message from the screen: a paste."""

MAX_WAITING = 1 << 20
"""Bytes that may wait for a screen that does not read before frames stop."""

PATIENCE = 0.004
"""Seconds of parsing after which the screen is asked again what the user did."""

DRAWING = 0.01
"""Seconds of drawing after which the next turn begins."""

EXIT_DONE, EXIT_FAILED, EXIT_USAGE = 0, 1, 2


class Worker:
    """The loop: messages of the screen, connections of the keepers, frames when they are due."""

    def __init__(self, link: socket.socket, ghostty: Ghostty) -> None:
        self._link = link
        self._ghostty = ghostty
        self._panes: dict[int, WorkerPane] = {}
        self._watched: dict[WorkerPane, int] = {}
        self._commands = wire.MessageReader(MAX_COMMAND)
        self._descriptors: list[int] = []
        self._out = bytearray()
        self._poll = select.epoll()
        self._poll.register(link, select.EPOLLIN)

    @property
    def descriptors(self) -> tuple[int, int]:
        """The descriptors that the loop itself needs: the link and the poll."""
        return self._link.fileno(), self._poll.fileno()

    def send(self, data: bytes) -> None:
        """Send to the screen, as far as it takes it now; the rest waits."""
        self._out += data
        self._flush()

    def _flush(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._out:
                sent = self._link.send(memoryview(self._out)[:READ], socket.MSG_DONTWAIT)
                del self._out[:sent]
        wanted = select.EPOLLIN | (select.EPOLLOUT if self._out else 0)
        self._poll.modify(self._link, wanted)

    def run(self) -> int:
        """Work until the screen goes away; return the exit status."""
        while True:
            ready = {descriptor for descriptor, _ in self._poll.poll(self._timeout())}
            if not self._turn(ready):
                return EXIT_DONE

    def _turn(self, ready: set[int]) -> bool:
        """Serve who is ready and draw what is due; False when the screen is gone.

        The user comes first: their input is looked for before any output is parsed, and again
        whenever that took a while.
        """
        if self._link.fileno() in ready and not self._serve_screen():
            return False
        looked = time.monotonic()
        waiting = [it for it in self._panes.values() if it.behind or it.descriptor in ready]
        for pane in sorted(waiting, key=_unfocused):
            if time.monotonic() > looked + PATIENCE:
                if not self._serve_screen():
                    return False
                looked = time.monotonic()
            self._serve_keeper(pane)
        self._watch()
        self._collect()
        return True

    def _timeout(self) -> float | None:
        if len(self._out) > MAX_WAITING:
            return None
        now = time.monotonic()
        when = min((pane.due(now) for pane in self._panes.values()), default=NEVER)
        return None if when == NEVER else max(0.0, when - now)

    def _collect(self) -> None:
        """Send what is due, the focused pane's first; what takes too long waits for a next turn."""
        begin = now = time.monotonic()
        due = [(pane.due(now), pane) for pane in self._panes.values()]
        ripe = [(_unfocused(pane), when, pane) for when, pane in due if when <= now]
        for _, _, pane in sorted(ripe, key=lambda it: it[:2]):
            if len(self._out) > MAX_WAITING or now > begin + DRAWING:
                return
            found = pane.collect(now)
            if found:
                self.send(found)
            now = time.monotonic()

    # -- keepers -----------------------------------------------------------------------------

    def _serve_keeper(self, pane: WorkerPane) -> None:
        if pane.out:
            pane.writable()
        if pane.open or pane.behind:
            pane.readable()

    def _watch(self) -> None:
        """Listen for room to write only where something waits."""
        for pane in self._panes.values():
            wanted = select.EPOLLIN | (select.EPOLLOUT if pane.out else 0)
            if not pane.open:
                # closing a descriptor takes it out of the poll by itself
                self._watched.pop(pane, None)
            elif self._watched.get(pane) != wanted:
                known = pane in self._watched
                (self._poll.modify if known else self._poll.register)(pane.descriptor, wanted)
                self._watched[pane] = wanted

    # -- the screen --------------------------------------------------------------------------

    def _serve_screen(self) -> bool:
        """Read once from the screen; False when it is gone."""
        self._flush()
        room = socket.CMSG_SPACE(16 * array.array("i").itemsize)
        try:
            data, ancillary, flags, _ = self._link.recvmsg(READ, room, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        for level, kind, payload in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                found = array.array("i")
                found.frombytes(payload[: len(payload) - len(payload) % found.itemsize])
                self._descriptors += found
        if flags & socket.MSG_CTRUNC:
            raise WireError("Descriptors were lost on the way.")
        messages = list(self._commands.feed(data))
        last = {it.pane: it for it in messages if it.kind == Down.RESIZE}
        for message in messages:
            # of many sizes at once only the last one is worth wrapping all rows anew
            if message.kind != Down.RESIZE or last[message.pane] is message:
                self._command(message)
        return bool(data)

    def _command(self, it: wire.Message) -> None:
        if it.kind == Down.OPEN:
            self._open(it)
            return
        pane = self._panes.get(it.pane)
        if pane is None:
            return  # closed meanwhile
        if it.kind == Down.CLOSE:
            self._close(pane)
        elif it.kind == Down.COPY:
            self.send(pane.copy(it.payload))
        else:
            perform(pane, it.kind, it.payload)

    def _open(self, it: wire.Message) -> None:
        if not self._descriptors:
            raise WireError("A pane comes without its connection.")
        descriptor = self._descriptors.pop(0)
        if it.pane in self._panes:
            self._close(self._panes[it.pane])
        if len(self._panes) >= wire.MAX_PANES:
            raise WireError("There are too many panes.")
        head, colors = it.payload[: wire.OPEN.size], it.payload[wire.OPEN.size :]
        columns, rows, rate, flags = wire.exactly(wire.OPEN, head)
        engine = GhosttyEngine(self._ghostty, columns, rows, unpack_palette(colors))
        self._panes[it.pane] = WorkerPane(it.pane, descriptor, engine, unpack_rate(rate), flags)

    def _close(self, pane: WorkerPane) -> None:
        self._watched.pop(pane, None)
        pane.close()
        pane.engine.close()
        del self._panes[pane.number]


def _unfocused(pane: WorkerPane) -> bool:
    return pane.rate is not Rate.FOCUSED


def prepare(descriptor: int, cache: Path | None) -> Worker:
    """Load everything that a worker needs, with files still in reach."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=descriptor)
    ghostty = Ghostty(cache)
    warm_up(ghostty)
    return Worker(link, ghostty)


def confine(worker: Worker) -> None:
    """Close the sandbox around this process and say what holds."""
    held = sandbox.confine(worker.descriptors, DESCRIPTORS + wire.MAX_PANES)
    hello = Hello(wire.PROTOCOL, held.landlock, held.seccomp, f"libghostty-vt {VERSION}")
    worker.send(wire.message(Up.HELLO, 0, wire.pack_hello(hello)))


def _fatal(descriptor: int, error: VMError) -> None:
    payload = wire.pack_texts(error.code, error.message, error.hint)
    with contextlib.suppress(OSError):  # the screen may be gone, which is one reason to be here
        os.write(descriptor, wire.message(Up.FATAL, 0, payload))


def main(argv: Sequence[str]) -> int:
    """Run a worker on the socket that argv names; return its exit status."""
    if not argv or not argv[0].isdecimal():
        sys.stderr.write("pane-worker takes the number of its socket\n")
        return EXIT_USAGE
    descriptor = int(argv[0])
    cache = Path(argv[1]) if len(argv) > 1 else None
    try:
        worker = prepare(descriptor, cache)
        confine(worker)
        return worker.run()
    except VMError as error:
        _fatal(descriptor, error)
    except Exception as error:  # nothing is above us, and the screen must hear of it
        _fatal(descriptor, VMError(f"The pane worker failed: {type(error).__name__}."))
    return EXIT_FAILED
