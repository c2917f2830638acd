"""What the user types into a pane, and how it reaches the guest whatever happens on the way."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import TYPE_CHECKING, Final

from app.ui.pane_input import MAX_PASTE, InputQueue
from app.ui.pane_screen import PaneScreen
from vm.terminal import wire, wire_view
from vm.terminal.screen import WHEEL_LINES, Modifier, MouseAction, clamp_size
from vm.terminal.stream import TAKE
from vm.terminal.wire import Down, Rate

if TYPE_CHECKING:
    from app.ui.pane_link import WorkerLink
    from widgets.terminal_feed import FeedListener, FeedRate, FeedState, MouseInput

KEEP_S: Final = 30.0
"""Seconds that input waits for a terminal that is not there; then nobody remembers having typed."""

REFUSE_S: Final = 2.0
"""Seconds in which the same sentence is said once: a key that is held down repeats."""

RESIZE_S: Final = 0.03
"""Seconds between two sizes for the worker, which reflows the scrollback for each."""

RATES = {"focused": Rate.FOCUSED, "visible": Rate.VISIBLE, "hidden": Rate.HIDDEN}
ACTIONS = {
    "press": MouseAction.PRESS,
    "release": MouseAction.RELEASE,
    "move": MouseAction.MOVE,
    "scroll_up": MouseAction.SCROLL_UP,
    "scroll_down": MouseAction.SCROLL_DOWN,
}

ENDED: Final = "The program has ended: what you type goes nowhere."
MIRRORED: Final = "Another client holds this terminal: take it over to type here."
AWAY: Final = "The session's keeper is not there: what you type is not kept any longer."
TOO_MUCH: Final = "The terminal takes no input and too much waits already: it was not kept."


class PaneUser(PaneScreen):
    """The writing half of `widgets.terminal_feed.PaneFeed`: input, size and pace.

    Input goes to the worker only while the terminal is live; at other times it waits in order.
    What was typed blind must never reach another program than the one that the user saw: it is
    dropped, with a word, when the program ends, when another one runs after a reconnect, and when
    the terminal stays away for KEEP_S.

    Ctrl+c while a paste waits gives up the rest of the paste and goes to the guest after what was
    typed before it: whoever presses it wants the flood to stop, not to wait behind it.
    """

    def __init__(self, size: tuple[int, int], *, active: bool) -> None:
        super().__init__(clamp_size(*size))
        self.number = 0
        self._link: WorkerLink | None = None
        self._wish = self._told_size = clamp_size(*size)
        self._active = active
        self._rate = Rate.VISIBLE
        self._queue = InputQueue()
        self._name = secrets.randbits(63)
        self._held = False
        self._focus: bool | None = None
        self._given_up = False
        self._keeping: asyncio.TimerHandle | None = None
        self._resizing: asyncio.TimerHandle | None = None
        self._refused: dict[str, float] = {}

    @property
    def pasting(self) -> int:
        """Characters of pastes that the guest has not taken yet."""
        return self._queue.pasting

    def _say(self, kind: Down, payload: bytes = b"") -> None:
        """Send to the worker; without one the message is about nothing and is dropped."""
        if self._link is not None:
            self._link.send(wire.message(kind, self.number, payload))

    # -- input -------------------------------------------------------------------------------

    def send_key(self, key: str, character: str | None) -> None:
        """Type a key."""
        if key == "ctrl+c" and self.pasting:
            self.cancel_paste()
        self._put(Down.KEY, wire.pack_texts(key[:64], (character or "")[:32]))

    def send_text(self, text: str) -> None:
        """Type text as it is."""
        self._put(Down.TEXT, wire.pack_texts(text))

    def send_paste(self, text: str) -> None:
        """Paste text, however long it takes; more than MAX_PASTE at once is refused."""
        if not self._may_type():
            return
        if self._queue.paste(text):
            self._pump()
        else:
            limit = MAX_PASTE >> 20
            self._refuse(f"Pastes of more than {limit} MiB are not kept: nothing of it was sent.")

    def cancel_paste(self) -> None:
        """Drop what still waits of pastes."""
        count = self._queue.cancel_paste()
        if count:
            self._refuse(f"The rest of the paste ({count} characters) was not sent.")
        self._pump()

    def send_mouse(self, mouse: MouseInput) -> None:
        """Pass a mouse event on; the wheel moves the page where nobody else can have it."""
        if self._mirrored or self._state in ("ended", "broken"):
            if mouse.action in ("scroll_up", "scroll_down"):
                self.scroll_by(-WHEEL_LINES if mouse.action == "scroll_up" else WHEEL_LINES)
            return
        modifiers = Modifier.SHIFT * mouse.shift | Modifier.CTRL * mouse.ctrl
        modifiers |= Modifier.ALT * mouse.alt
        x, y = (max(0, min(at, 0xFFFF)) for at in (mouse.x, mouse.y))
        button = mouse.button if 0 <= mouse.button <= 3 else 0
        self._put(Down.MOUSE, wire.MOUSE.pack(ACTIONS[mouse.action], x, y, button, int(modifiers)))

    def send_focus(self, focused: bool) -> None:
        """Say that the view got or lost the focus; only the last word counts."""
        self._focus = focused
        self._pump()

    def _put(self, kind: Down, payload: bytes) -> None:
        if self._may_type():
            if self._queue.put(kind, payload):
                self._pump()
            else:
                self._refuse(TOO_MUCH)

    def _may_type(self) -> bool:
        """Tell whether input has somewhere to go, else say why not."""
        if self._state in ("ended", "broken"):
            self._refuse(ENDED if self._state == "ended" else self.message)
        elif self._mirrored:
            self._refuse(MIRRORED)
        elif self._given_up:
            self._refuse(AWAY)
        else:
            return True
        return False

    def _pump(self) -> None:
        """Send what may be sent now."""
        if self._link is None or self._state != "live":
            return
        if self._focus is not None:
            self._say(Down.FOCUS, wire_view.BYTE.pack(self._focus))
            self._focus = None
        for kind, payload in self._queue.ready():
            self._say(kind, payload)

    def _refuse(self, message: str) -> None:
        """Say a sentence, unless it was said a moment ago."""
        now = time.monotonic()
        if now - self._refused.get(message, 0.0) >= REFUSE_S:
            self._refused = {message: now}
            super()._refuse(message)

    # -- what becomes of input that waits ----------------------------------------------------

    def _enter(self, state: FeedState, status: int | None, message: str) -> None:
        super()._enter(state, status, message)
        if state == "live":
            self._stop_keeping()
            self._pump()
        elif state in ("ended", "broken"):
            self._stop_keeping()
            self._drop("The program has ended" if state == "ended" else "The terminal is gone")
        elif self._keeping is None and not self._given_up:
            self._keeping = asyncio.get_running_loop().call_later(KEEP_S, self._give_up)

    def _stop_keeping(self) -> None:
        self._given_up = False
        if self._keeping is not None:
            self._keeping.cancel()
            self._keeping = None

    def _give_up(self) -> None:
        """Keep nothing any longer: nobody knows by now what the user typed it for."""
        self._keeping = None
        self._given_up = True
        self._drop(f"The terminal did not come back within {KEEP_S:.0f} s")

    def _drop(self, why: str) -> None:
        dropped = str(self._queue.drop())
        if dropped:
            self._refuse(f"{why}: {dropped} dropped.")

    # -- pace and size -----------------------------------------------------------------------

    def set_rate(self, rate: FeedRate) -> None:
        """Say how often the screen may change."""
        wanted = RATES[rate]
        if wanted is not self._rate:
            self._rate = wanted
            self._say(Down.RATE, bytes([wanted]))
            if wanted is not Rate.VISIBLE:
                self.painted()

    def painted(self) -> None:
        """Say that the last change is on the screen."""
        raise NotImplementedError

    def leave(self, listener: FeedListener) -> None:
        """Tell `listener` no more and draw for nobody; nothing if another one listens by now."""
        if self.listener is listener:
            self.listener = None
            self.set_rate("hidden")

    def resize(self, columns: int, rows: int) -> None:
        """Ask for another size, now or a moment after the last one."""
        self._wish = clamp_size(columns, rows)
        if self._resizing is None:
            self._tell_size()

    def _tell_size(self) -> None:
        self._resizing = None
        if self._wish != self._told_size:
            self._told_size = self._wish
            self._say(Down.RESIZE, wire.PAIR.pack(*self._wish))
            self._resizing = asyncio.get_running_loop().call_later(RESIZE_S, self._tell_size)

    # -- who holds the terminal --------------------------------------------------------------

    def set_active(self, active: bool) -> None:
        """Say whether this pane wants the terminal; one that does not only watches."""
        if active != self._active:
            self._active = active
            self._say(Down.ACTIVE, bytes([active]))

    def take_over(self) -> None:
        """Ask the keeper for the terminal, now or as soon as it is reached again."""
        self._active = self._held = True
        self._say(Down.HOLD, wire_view.BYTE.pack(TAKE))

    def scroll_by(self, lines: int) -> None:
        """Move the visible page, negative up."""
        if lines:
            self._say(Down.SCROLL, wire.SIGNED.pack(max(-(1 << 30), min(lines, 1 << 30))))
