"""Input on its way to a guest: what waits, and what was sent and may have to be sent again.

Nothing that was typed is lost while a worker or a keeper is replaced, and nothing overtakes: keys
typed after a paste come after it. Everything is bounded; what is over a bound is refused as a
whole, never cut. Pastes are cut into pieces here and sent only as fast as the guest takes them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from vm.terminal import wire_view
from vm.terminal.screen import MouseAction
from vm.terminal.wire import Down
from vm.terminal.wire_view import Paste

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_KEYS: Final = 64 << 10
"""Bytes of keys, texts and mouse events that may wait or be on their way."""

MAX_PASTE: Final = 16 << 20
"""Bytes of pasted text that may wait."""

PIECE: Final = 16 << 10
"""Characters of one piece of a paste: at most 64 KiB, which is one frame of `pane.sock`."""

WINDOW: Final = 256 << 10
"""Bytes that are on their way before the next piece of a paste is sent."""

OVERHEAD: Final = 32
"""Bytes that a message counts for besides its payload; even an empty one takes memory."""


class Message(NamedTuple):
    """One message to the worker."""

    kind: Down
    payload: bytes

    @property
    def size(self) -> int:
        """How many bytes it counts for."""
        return len(self.payload) + OVERHEAD

    @property
    def moves(self) -> bool:
        """Whether it says no more than where the mouse is."""
        return self.kind is Down.MOUSE and self.payload[0] == MouseAction.MOVE


class Dropped(NamedTuple):
    """What was given up: keys (and mouse events), and characters of pastes."""

    keys: int
    characters: int

    def __str__(self) -> str:
        """Say it in words, empty for nothing."""
        keys = f"{self.keys} key" + ("" if self.keys == 1 else "s") if self.keys else ""
        pasted = f"{self.characters} pasted characters" if self.characters else ""
        return " and ".join(filter(None, (keys, pasted)))


@dataclass(slots=True)
class _Pasting:
    """A paste that was sent up to character `at`."""

    text: str
    size: int
    at: int = 0

    def piece(self) -> Message:
        """Return the next piece."""
        begin, end = self.at, min(self.at + PIECE, len(self.text))
        if end < len(self.text) and self.text[end - 1] == "\r":
            end -= 1  # a line end of two characters must not become two of one
        self.at = end
        flags = Paste(0)
        if begin == 0:
            flags |= Paste.BEGIN
        if end == len(self.text):
            flags |= Paste.END
        return Message(Down.PASTE, wire_view.pack_paste(self.text[begin:end], flags))


class InputQueue:
    """The input of one pane, in the order in which the user made it."""

    def __init__(self) -> None:
        self._waiting: deque[Message | _Pasting] = deque()
        self._flying: deque[Message] = deque()
        self._key_bytes = 0
        self._paste_bytes = 0
        self._flying_bytes = 0
        self._taken = 0
        self._again = self._forgotten = 0
        self.epoch = 0
        """Another number after something was forgotten of which nobody knows whether it arrived:
        the keeper must begin to count anew."""

    @property
    def pasting(self) -> int:
        """Characters of pastes that wait."""
        pastes = (it for it in self._waiting if isinstance(it, _Pasting))
        return sum(len(it.text) - it.at for it in pastes)

    @property
    def flying(self) -> int:
        """How many messages are on their way."""
        return len(self._flying)

    @property
    def held(self) -> int:
        """Bytes that are kept here (those on their way may be counted twice)."""
        return self._key_bytes + self._paste_bytes + self._flying_bytes

    def put(self, kind: Down, payload: bytes) -> bool:
        """Take a key, a text or a mouse event; False (and nothing happens) when it is too much."""
        message = Message(kind, payload)
        last = self._waiting[-1] if self._waiting else None
        if isinstance(last, Message) and last.moves and message.moves:
            self._waiting.pop()  # only where the mouse is in the end counts
            self._key_bytes -= last.size
        if self._key_bytes + message.size > MAX_KEYS:
            return False
        self._waiting.append(message)
        self._key_bytes += message.size
        return True

    def paste(self, text: str) -> bool:
        """Take a paste; False (and nothing happens) when it is too much."""
        size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        if self._paste_bytes + size > MAX_PASTE:
            return False
        if text:
            self._waiting.append(_Pasting(text, size))
            self._paste_bytes += size
        return True

    def ready(self) -> Iterator[Message]:
        """Yield what may be sent now; it counts as sent."""
        while self._waiting:
            first = self._waiting[0]
            if not isinstance(first, _Pasting):
                message = first
                self._waiting.popleft()
                self._again = max(0, self._again - 1)
            elif self._flying_bytes >= WINDOW:
                return
            else:
                message = first.piece()
                if first.at >= len(first.text):
                    self._waiting.popleft()
                    self._paste_bytes -= first.size
            self._flying.append(message)
            self._flying_bytes += message.size
            yield message

    @property
    def passed_on(self) -> int:
        """How many messages are known to have been passed on since the pane began, modulo 2^32."""
        return self._taken

    def taken(self, count: int) -> bool:
        """Take how many messages the keeper has passed on; False when it cannot be."""
        news = (count - self._taken) & 0xFFFFFFFF
        if news > self._forgotten + len(self._flying) + self._again:
            return False
        self._taken = count
        forgotten = min(news, self._forgotten)
        self._forgotten -= forgotten
        for _ in range(news - forgotten):
            if self._flying:
                message = self._flying.popleft()
                self._flying_bytes -= message.size
            else:
                message = self._sent_before()
            if message.kind is not Down.PASTE:
                self._key_bytes -= message.size
        return True

    def _sent_before(self) -> Message:
        """Take the first message that was sent by a worker that ended since."""
        message = self._waiting.popleft()
        assert isinstance(message, Message)  # `again` put it there
        self._again -= 1
        return message

    def again(self) -> None:
        """Begin anew with another worker: what was not passed on waits once more.

        The keeper may say that it has passed on some of it before anything is sent.
        """
        self.epoch += bool(self._forgotten)
        self._forgotten = 0
        self._again += len(self._flying)
        self._waiting.extendleft(reversed(self._flying))
        self._flying.clear()
        self._flying_bytes = 0

    def drop(self) -> Dropped:
        """Forget everything that waits or is on its way and return how much it was.

        What is on its way may still arrive, and is counted then; it is only not sent again.
        """
        left = [it for it in (*self._flying, *self._waiting) if isinstance(it, Message)]
        found = Dropped(sum(it.kind is not Down.PASTE for it in left), self.pasting)
        self._forgotten += len(self._flying)
        self.epoch += bool(self._again)
        self._waiting.clear()
        self._flying.clear()
        self._key_bytes = self._paste_bytes = self._flying_bytes = self._again = 0
        return found

    def cancel_paste(self) -> int:
        """Give up what waits of pastes; how many characters.

        The end mark of a paste that has begun is still sent, or the guest would take every key
        after it for pasted text.
        """
        count = self.pasting
        kept: deque[Message | _Pasting] = deque()
        for it in self._waiting:
            if not isinstance(it, _Pasting):
                kept.append(it)
            elif it.at:
                kept.append(Message(Down.PASTE, wire_view.pack_paste("", Paste.END)))
        self._waiting, self._paste_bytes = kept, 0
        return count
