"""One pane on the screen's side: the feed of a view, joined to a worker and a keeper's socket."""

from __future__ import annotations

import asyncio
import collections
import os
import socket
import struct
import time
from typing import TYPE_CHECKING

from app.errors import AppError
from app.ui.pane_actions import PaneActions
from app.ui.pane_screen import PaneScreen
from vm.errors import HostLacks
from vm.terminal import wire, wire_view
from vm.terminal.screen import Modifier, MouseAction, clamp_size
from vm.terminal.wire import Down, PaneState, Rate, Up, WireError
from vm.terminal.wire_frame import unpack_frame

if TYPE_CHECKING:
    from pathlib import Path

    from app.ui.pane_link import WorkerLink
    from app.ui.panes import PaneHub
    from vm.terminal.wire import Message
    from widgets.terminal_feed import FeedListener, FeedRate, MouseInput

CONNECT_S = 2.0
RETRY_S = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds between tries to reach the keeper; the last one repeats."""

PATIENT_TRIES = 3
"""Tries before a pane that was never live says that it waits: a keeper may be just starting."""

SHORT_S = 2.0
"""A connection that held no longer than that is followed by a pause, or one could spin."""

CRASHES, CRASH_SPAN_S = 3, 20.0
"""So many ends of the worker within so many seconds mean that this terminal's bytes cause them."""

UNPAINTED_S = 0.25
"""A view that has not painted by then (covered, scrolled away) does not hold up the next frame."""

COPY_S = 2.0
PEER = struct.Struct("3i")
RATES = {"focused": Rate.FOCUSED, "visible": Rate.VISIBLE, "hidden": Rate.HIDDEN}
ACTIONS = {
    "press": MouseAction.PRESS,
    "release": MouseAction.RELEASE,
    "move": MouseAction.MOVE,
    "scroll_up": MouseAction.SCROLL_UP,
    "scroll_down": MouseAction.SCROLL_DOWN,
}


class Pane(PaneScreen, PaneActions):
    """One terminal of one session; implements `widgets.terminal_feed.PaneFeed`, and this besides.

    `name` is what `PaneHub.open` was given.
    """

    def __init__(
        self, hub: PaneHub, name: str, path: Path, size: tuple[int, int], *, active: bool
    ) -> None:
        super().__init__(clamp_size(*size))
        self._hub, self.name, self._path = hub, name, path
        self.number = 0
        self._wish = clamp_size(*size)
        self._active = active
        self._rate = Rate.VISIBLE
        self._link: WorkerLink | None = None
        self._over = asyncio.Event()
        self._short_turns = 0
        self._crashes: collections.deque[float] = collections.deque(maxlen=CRASHES)
        self._task: asyncio.Task[None] | None = None
        self._unpainted: int | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._copies: dict[int, asyncio.Future[str]] = {}
        self._copy_number = 0

    @property
    def worker_pid(self) -> int | None:
        """The process that runs this pane's engine, for diagnosis."""
        return self._link.pid if self._link else None

    # -- life --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start to connect."""
        self._task = asyncio.create_task(self._run(), name=f"pane {self.name}")

    def close(self) -> None:
        """End this client of the terminal; the session goes on."""
        if self._task is not None:
            self._task.cancel()
        self.listener = None
        if self._link is not None:
            self._say(Down.CLOSE)
            self._hub.release(self, self._link)
            self._link = None
        self._settle(None)
        self._fail_copies()
        self._hub.forget(self)

    async def closed(self) -> None:
        """Wait until nothing of the pane runs."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            descriptor = await self._connect()
            self._over.clear()
            try:
                link = self._link or await self._hub.claim(self)
            except HostLacks as error:
                os.close(descriptor)
                self._enter("broken", None, error.message)
                return
            except AppError as error:
                os.close(descriptor)
                if self._crashed(error.message):
                    return
                continue
            except BaseException:
                os.close(descriptor)
                raise
            self._link = link
            self._open(link, descriptor)
            await self._turn()
            if self.state == "broken":
                return

    async def _turn(self) -> None:
        """Wait until worker or keeper is gone; pause before the next try if it was soon."""
        begin = time.monotonic()
        await self._over.wait()
        short = time.monotonic() - begin < SHORT_S
        self._short_turns = self._short_turns + 1 if short else 0
        if short and self.state == "lost":
            await asyncio.sleep(RETRY_S[min(self._short_turns, len(RETRY_S)) - 1])

    async def _connect(self) -> int:
        """Return a connection to the keeper, trying until there is one."""
        tries = 0
        while True:
            try:
                return await self._connect_once()
            except (OSError, TimeoutError) as error:
                why = os.strerror(error.errno) if error.errno else "no answer"
                if tries >= PATIENT_TRIES or self.state == "live":
                    self._enter("lost", None, f"The session's keeper is not there: {why}.")
            await asyncio.sleep(RETRY_S[min(tries, len(RETRY_S) - 1)])
            tries += 1

    async def _connect_once(self) -> int:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            loop = asyncio.get_running_loop()
            await asyncio.wait_for(loop.sock_connect(connection, str(self._path)), CONNECT_S)
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size)
            if PEER.unpack(credentials)[1] != os.geteuid():
                raise PermissionError(1, "the socket belongs to somebody else")
        except BaseException:
            connection.close()
            raise
        return connection.detach()

    def _open(self, link: WorkerLink, descriptor: int) -> None:
        head = wire.OPEN.pack(*self._wish, self._rate, self._active)
        payload = head + self._hub.palette.pack()
        self._settle(None)
        link.send(wire.message(Down.OPEN, self.number, payload), descriptor)

    def worker_died(self, link: WorkerLink) -> None:
        """Be told that the worker has ended; a new one takes over."""
        if link is not self._link:
            return
        self._link = None
        self._settle(None)
        self._fail_copies()
        self._crashed("The terminal engine ended and starts again.")
        self._over.set()

    def _crashed(self, why: str) -> bool:
        """Count an end of the worker; True when this pane is given up."""
        now = time.monotonic()
        self._crashes.append(now)
        if len(self._crashes) == CRASHES and now - self._crashes[0] < CRASH_SPAN_S:
            self._enter("broken", None, "This terminal's output ends its engine each time.")
            return True
        self._enter("restarting", None, why)
        return False

    # -- what the worker says ----------------------------------------------------------------

    def heard(self, message: Message) -> None:
        """Take a message of the worker about this pane. Raises WireError when it is none."""
        if message.kind == Up.FRAME:
            self._framed(message.payload)
        elif message.kind == Up.STATE:
            self._stated(message.payload)
        elif message.kind == Up.COPIED:
            self._copied(message.payload)
        else:
            self.happened(message)

    def _framed(self, payload: bytes) -> None:
        number, frame = unpack_frame(payload)
        self._settle(number)
        watched = self._rate is not Rate.HIDDEN and self.listener is not None
        if self.show(frame, self._hub.maker) and watched:
            if self._unpainted is not None:
                loop = asyncio.get_running_loop()
                self._patience = loop.call_later(UNPAINTED_S, self.painted)
        else:
            self.painted()

    def _settle(self, number: int | None) -> None:
        """Note the frame that waits for its ack (None: none does)."""
        self._unpainted = number
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def painted(self) -> None:
        """Say that the last change is on the screen."""
        number = self._unpainted
        if number is not None:
            self._settle(None)
            self._say(Down.ACK, wire.NUMBER.pack(number))

    def _stated(self, payload: bytes) -> None:
        state, status = wire.exactly(wire.STATE, payload[: wire.STATE.size])
        (why,) = wire.unpack_texts(payload[wire.STATE.size :], 1, 4096)
        if state == PaneState.LIVE:
            self._enter("live", None, "")
        elif state == PaneState.ENDED:
            self._enter("ended", status, f"The program ended with status {status}.")
        elif state == PaneState.LOST:
            self._enter("lost", None, f"The terminal was lost: {wire.one_line(why, 200)}.")
            self._over.set()
        else:
            raise WireError(f"There is no state {state}.")

    def _copied(self, payload: bytes) -> None:
        copied = wire_view.unpack_copied(payload)
        waiting = self._copies.pop(copied.request, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(copied.text)

    def _fail_copies(self) -> None:
        for waiting in self._copies.values():
            waiting.cancel()
        self._copies.clear()

    # -- what the user does ------------------------------------------------------------------

    def _say(self, kind: Down, payload: bytes = b"") -> None:
        """Send to the worker; without one the message is about nothing and is dropped."""
        if self._link is not None:
            self._link.send(wire.message(kind, self.number, payload))

    def set_rate(self, rate: FeedRate) -> None:
        """Say how often the screen may change."""
        wanted = RATES[rate]
        if wanted is not self._rate:
            self._rate = wanted
            self._say(Down.RATE, bytes([wanted]))
            if wanted is Rate.HIDDEN:
                self.painted()

    def leave(self, listener: FeedListener) -> None:
        """Tell `listener` no more and draw for nobody; nothing if another one listens by now."""
        if self.listener is listener:
            self.listener = None
            self.set_rate("hidden")

    def set_active(self, active: bool) -> None:
        """Say whether this pane's size is the guest's size (an active client sends resizes)."""
        if active != self._active:
            self._active = active
            self._say(Down.ACTIVE, bytes([active]))

    def resize(self, columns: int, rows: int) -> None:
        """Ask for another size."""
        wish = clamp_size(columns, rows)
        if wish != self._wish:
            self._wish = wish
            self._say(Down.RESIZE, wire.PAIR.pack(*wish))

    def send_key(self, key: str, character: str | None) -> None:
        """Type a key."""
        self._say(Down.KEY, wire.pack_texts(key[:64], (character or "")[:32]))

    def send_text(self, text: str) -> None:
        """Type text as it is."""
        self._say(Down.TEXT, wire.pack_texts(_bounded(text)))

    def send_paste(self, text: str) -> None:
        """Paste text."""
        self._say(Down.PASTE, wire_view.pack_paste(_bounded(text)))

    def send_mouse(self, mouse: MouseInput) -> None:
        """Pass a mouse event on."""
        modifiers = Modifier.SHIFT * mouse.shift | Modifier.CTRL * mouse.ctrl
        modifiers |= Modifier.ALT * mouse.alt
        x, y = (max(0, min(at, 0xFFFF)) for at in (mouse.x, mouse.y))
        button = mouse.button if 0 <= mouse.button <= 3 else 0
        self._say(Down.MOUSE, wire.MOUSE.pack(ACTIONS[mouse.action], x, y, button, int(modifiers)))

    def send_focus(self, focused: bool) -> None:
        """Say that the view got or lost the focus."""
        self._say(Down.FOCUS, bytes([focused]))

    def scroll_by(self, lines: int) -> None:
        """Move the visible page, negative up."""
        if lines:
            self._say(Down.SCROLL, wire.SIGNED.pack(max(-(1 << 30), min(lines, 1 << 30))))

    def scroll_to_end(self) -> None:
        """Follow the newest output again."""
        self._say(Down.SCROLL, wire.SIGNED.pack(0))

    def recolor(self) -> None:
        """Use the hub's colours from now on."""
        self._say(Down.PALETTE, self._hub.palette.pack())

    async def text(self, *, scrollback: bool = False) -> str:
        """Return the visible page (or all rows) as plain text; TimeoutError after 2 s.

        Raises ConnectionError when there is no engine to ask.
        """
        if self._link is None:
            raise ConnectionError("the terminal's engine is not running")
        self._copy_number = (self._copy_number + 1) & 0xFFFFFFFF
        waiting = asyncio.get_running_loop().create_future()
        number = self._copy_number
        self._copies[number] = waiting
        self._say(Down.COPY, wire.COPY.pack(number, bool(scrollback), 0, 0, 0, 0, 0))
        try:
            return await asyncio.wait_for(waiting, COPY_S)
        finally:
            self._copies.pop(number, None)


def _bounded(text: str) -> str:
    """Cut text so that its UTF-8 form fits one message."""
    data = text.encode("utf-8", "replace")[: wire.MAX_TEXT]
    return data.decode("utf-8", "ignore")
