"""What a terminal was switched to at a given moment of its output, without an engine.

The record of a terminal keeps only its newest part. Whoever replays that must know what was
switched on before: the alternate screen, the mouse, bracketed paste. `ModeTracker` reads the output
as it is recorded and marks places at which a replay can begin: between two sequences, outside of
every string, between two characters. It draws nothing and trusts nothing: everything is bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

STEP: Final = 64 << 10
"""Bytes between two places at which a replay can begin."""

ALTERNATE: Final = (47, 1047, 1049)
MODES: Final = frozenset(
    (1, 5, 6, 7, 9, 25, 45, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016)
) | {1036, 2004, 2027, 2031, 2048, *ALTERNATE}
"""Private modes (DECSET) that outlive the output that set them. Synchronised output (2026) does
not: it belongs to one frame."""

SOFT_RESET: Final = (1, 6, 7, 25, 66)
"""What a soft reset (DECSTR) brings back, as the engine that draws it does; see `soft_reset`."""

ON: Final = frozenset((7, 25, 1007, 1036, 2027))
"""Modes that are on in a new terminal of ours."""

CUT: Final = b"\x18\x1b\\"
"""Ends whatever sequence, string or character the output breaks off in."""

UNDONE: Final = (
    b"\x1b[!p\x1b[<99u\x1b[>4m\x1b[?2026l\x1b[0 q\x1b]8;;\x1b\\"
    b"\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\"
)
"""Takes back what is not among MODES: margins, character sets and style (by the soft reset, which
leaves the cursor where it is), keyboards, a held frame, the cursor's shape, a link, colours."""

BELOW: Final = b"\r\n\x1b[J"
"""Goes on in the next line, and leaves nothing under it that belongs to no program any more."""

MAX_PENDING: Final = 64
"""Longest sequence that is waited for; a longer one changes no mode of ours."""

MAX_TITLE: Final = 256
MAX_STACK: Final = 16
"""Entries of a keyboard's stack of modes, as many as terminals keep."""

_STRING_END: Final = re.compile(rb"\x07|\x1b\\|\x18|\x1a|(?=\x1b[^\\])")
"""Another sequence ends a string as well, and is read itself."""

_TOKEN: Final = re.compile(
    rb"\x1b(?:(?P<string>[\]PX^_])|(?P<reset>c)|(?P<keypad>[=>])|\[(?:"
    rb"\?(?P<modes>[0-9;]{1,48})(?P<set>[hl])|(?P<soft>!p)|(?P<region>[0-9;]{0,16})r"
    rb"|(?P<kitty>[<>=])(?P<flags>[0-9;]{0,12})u|>4;?(?P<other>[0-9]?)m))"
)
_PENDING: Final = re.compile(rb"\x1b(?:\[[0-?]{0,60}[ -/]{0,2}|[ -/]{0,2})\Z")
_CONTINUES: Final = re.compile(rb"[\x80-\xbf]{0,3}\Z")
_REGION: Final = re.compile(rb"[0-9]{0,4};[0-9]{0,4}\Z")
_TITLE: Final = re.compile(rb"\][02];")
_ASK: Final = re.compile(rb"\](?:9;(?!4;)|99;|777;notify;)")
"""Notifications of iTerm, kitty and urxvt; `9;4` is ConEmu's progress."""

_CONTROL: Final = re.compile(rb"[\x00-\x1f\x7f]")


class Place(NamedTuple):
    """A byte of the record at which a replay can begin, and what to send before it."""

    offset: int
    prelude: bytes


@dataclass(slots=True)
class Switches:
    """What is switched on."""

    modes: dict[int, bool] = field(default_factory=dict[int, bool])
    stacks: tuple[list[bytes], list[bytes]] = field(default_factory=lambda: ([], []))
    """The keyboard's modes (kitty protocol) of the main and of the alternate screen."""
    keypad: bool = False
    region: bytes = b""
    other_keys: bytes = b""
    title: bytes = b""

    @property
    def alternate(self) -> int:
        """The mode by which the alternate screen was entered, else 0."""
        return next((mode for mode in ALTERNATE if self.modes.get(mode)), 0)

    def take(self, token: re.Match[bytes]) -> None:
        """Do what a sequence does."""
        if token["reset"]:
            self.modes.clear()
            self.stacks = ([], [])
            self.keypad, self.region, self.other_keys = False, b"", b""
        elif token["soft"]:
            for mode in SOFT_RESET:
                self.modes.pop(mode, None)
            self.keypad, self.region = False, b""
        elif token["keypad"]:
            self.keypad = token["keypad"] == b"="
        elif token["modes"]:
            self._set(token["modes"], token["set"] == b"h")
        elif token["kitty"]:
            self._keyboard(token["kitty"], token["flags"])
        elif token["other"] is not None:
            self.other_keys = token["other"]
        elif token["region"] is not None:
            self.region = token["region"] if _REGION.match(token["region"]) else b""

    def _set(self, numbers: bytes, on: bool) -> None:
        for number in numbers.split(b";"):
            mode = int(number or b"0")
            if mode in ALTERNATE:
                for other in ALTERNATE:
                    self.modes.pop(other, None)
                self.stacks[1].clear()
                self.modes[mode] = on
            elif mode in MODES:
                self.modes[mode] = on

    def _keyboard(self, what: bytes, numbers: bytes) -> None:
        stack = self.stacks[bool(self.alternate)]
        first = numbers.split(b";")[0]
        if what == b">":
            stack.append(first or b"0")
            del stack[:-MAX_STACK]
        elif what == b"<":
            count = min(int(first or b"1"), MAX_STACK)
            del stack[max(0, len(stack) - count) :]
        elif numbers.count(b";") == 0 or numbers.endswith(b";1"):
            stack[-1:] = [first or b"0"]

    def undo(self) -> bytes:
        """Return the bytes that switch this back for another program, which writes below.

        The alternate screen is left only where it is on: on the main one, what leaves it puts the
        cursor back where it was saved last, and that is the upper left corner after a soft reset.
        """
        alternate = self.alternate
        left = b"\x1b[<99u\x1b[?%dl" % alternate if alternate else b""
        back = (
            b"\x1b[?%d%c" % (mode, b"h" if mode in ON else b"l")
            for mode, on in self.modes.items()
            if mode not in (*ALTERNATE, *SOFT_RESET) and on != (mode in ON)
        )
        return CUT + left + UNDONE + b"".join(back) + BELOW

    def prelude(self) -> bytes:
        """Return the bytes that switch a new terminal to this."""
        parts = [b"\x1b[>%bu" % flags for flags in self.stacks[0]]
        alternate = self.alternate
        if alternate:
            parts.append(b"\x1b[?%dh" % alternate)
            parts += [b"\x1b[>%bu" % flags for flags in self.stacks[1]]
        for mode, on in self.modes.items():
            if mode not in ALTERNATE:
                parts.append(b"\x1b[?%d%c" % (mode, b"h" if on else b"l"))
        if self.keypad:
            parts.append(b"\x1b=")
        if self.other_keys:
            parts.append(b"\x1b[>4;%bm" % self.other_keys)
        if self.region:
            parts.append(b"\x1b[%br\x1b[H" % self.region)
        if self.title:
            parts.append(b"\x1b]2;%b\x1b\\" % self.title)
        return b"".join(parts)


class ModeTracker:
    """Reads a terminal's output from left to right."""

    def __init__(self, place: Place, step: int = STEP) -> None:
        """Begin at a place of the record; note another one about every `step` bytes."""
        self._offset, self._step = 0, len(place.prelude) + 1
        self.switches = Switches()
        self.asks = 0
        """How often the program rang the bell or sent a notification."""
        self._pending = b""
        self._string: bytearray | None = None
        self.places = [Place(0, b"")]
        """Where a replay can begin, in order."""
        self.feed(place.prelude)
        self._offset, self._step, self.places = place.offset, step, [place]

    @property
    def now(self) -> Place:
        """The end of what was read; in the middle of a string the rest of it is swallowed."""
        inside = b"\x1b" + self._string[:1] if self._string is not None else b""
        return Place(self._offset, self.switches.prelude() + inside)

    def feed(self, data: bytes) -> None:
        """Read output that follows what was read before."""
        self._offset += len(data)
        data, self._pending = self._pending + data, b""
        begin = self._offset - len(data)
        at = 0
        while at < len(data):
            if self._string is not None:
                at = self._read_string(data, at)
            else:
                at = self._read(data, at, begin)

    def forget(self, start: int) -> None:
        """Forget places before byte `start`, which the record does not hold any longer."""
        while len(self.places) > 1 and self.places[0].offset < start:
            del self.places[0]

    def _read(self, data: bytes, at: int, begin: int) -> int:
        """Read up to the next sequence that matters; return where to go on."""
        token = _TOKEN.search(data, at)
        pending = None if token else _PENDING.search(data, max(at, len(data) - MAX_PENDING))
        found = token or pending
        end = found.start() if found else len(data)
        self.asks += data.count(b"\x07", at, end)
        if begin + end >= self.places[-1].offset + self._step:
            place = begin + (end if found else _safe(data, at, end))
            if place > self.places[-1].offset:
                self.places.append(Place(place, self.switches.prelude()))
        if token is None:
            self._pending = data[end:]
            return len(data)
        if token["string"]:
            self._string = bytearray(token["string"])
        else:
            self.switches.take(token)
        return token.end()

    def _read_string(self, data: bytes, at: int) -> int:
        """Read a string sequence; only a title is kept of it."""
        assert self._string is not None
        end = _STRING_END.search(data, at)
        stop = end.start() if end else len(data)
        room = MAX_TITLE + 8 - len(self._string)
        self._string += data[at : min(stop, at + max(0, room))]
        if end is None:
            self._pending = b"\x1b" if data.endswith(b"\x1b") else b""
            return len(data)
        text, self._string = bytes(self._string), None
        self.asks += bool(_ASK.match(text))
        if _TITLE.match(text) and end[0] in (b"\x07", b"\x1b\\"):
            self.switches.title = _CONTROL.sub(b"", text[3 : 3 + MAX_TITLE])
        return end.end()


def _safe(data: bytes, at: int, end: int) -> int:
    """Return the last place of plain output where a replay may begin."""
    found = max(data.rfind(b"\n", at, end) + 1, data.rfind(b"\x1b", at, end))
    if found > at:
        return found
    continued = _CONTINUES.search(data, max(at, end - 3), end)
    return max(at, (continued.start() if continued else end) - 1)
