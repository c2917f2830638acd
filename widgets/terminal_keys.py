"""Keys that Textual's parser loses on terminals without the kitty keyboard protocol.

Such a terminal (VTE, Terminal.app, tmux without extended keys) sends Alt as an Escape before the
key. Textual understands that for most letters only: Alt+Enter arrives as Enter, Ctrl+Alt+A as
Ctrl+A, Alt+Backspace as Ctrl+W, Alt+2 as a trade mark sign, Alt+B as Ctrl+Left. And a lone Escape
waits up to 0.2 s for what may follow, far longer than any terminal takes to send the rest of a
sequence.
"""

from __future__ import annotations

import select
import sys
from typing import TYPE_CHECKING, cast

from textual import constants, events
from textual._xterm_parser import XTermParser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from textual.message import Message

    KeyEvents = Callable[..., Iterable[events.Key]]

ESCAPE_DELAY = 0.015
"""Seconds that a lone Escape waits: a sequence comes in one write, the next key much later."""

ESCAPE = "\x1b"
NAMED = {"\r": "enter", "\x7f": "backspace", "\t": "tab", "-": "minus", "=": "equals_sign"}
PLAIN = frozenset("0123456789bf")
"""What Textual takes, after an Escape, for a symbol of one terminal's keyboard or for a move."""

METHOD, MARK = "_sequence_to_key_events", "_cloche_alt"

LONE_MODIFIERS = frozenset(
    {
        *(f"{side}_{name}" for side in ("left", "right")
          for name in ("shift", "control", "alt", "super", "hyper", "meta")),
        *(f"iso_level{level}_shift" for level in (3, 5)),
        "caps_lock", "scroll_lock", "num_lock",
    }
)  # fmt: skip
"""Keys that mean nothing alone; the kitty protocol reports them all the same."""


def alt_key(sequence: str) -> str | None:
    """Return the name of the key that Escape and one character are, None where Textual knows it."""
    if len(sequence) != 2 or sequence[0] != ESCAPE:
        return None
    follows = sequence[1]
    if follows in NAMED:
        return f"alt+{NAMED[follows]}"
    if follows in PLAIN:
        return f"alt+{follows}"
    if "\x01" <= follows <= "\x1a":
        return f"alt+ctrl+{chr(ord(follows) + 0x60)}"
    return None


def _wait_for_more() -> None:
    """Wait on the terminal for what may follow an Escape; the input thread has nothing else."""
    terminal = sys.__stdin__
    if terminal is not None and terminal.isatty():
        select.select([terminal], [], [], ESCAPE_DELAY)


def mend_parser(parser: type[XTermParser] = XTermParser) -> None:
    """Teach the parser Alt with Enter, Tab, Backspace, digits and Ctrl+letters, and a quick Escape.

    Call it once before the app runs; a second call does nothing. It touches a private method of
    Textual, so tests hold it to what it promises.
    """
    constants.ESCAPE_DELAY = ESCAPE_DELAY  # type: ignore[misc]  # Final, but read at each use
    if getattr(parser, MARK, False):
        return
    inner, inner_feed = cast("KeyEvents", getattr(parser, METHOD)), parser.feed

    def keys(self: XTermParser, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        name = alt_key(ESCAPE + sequence if alt else sequence)
        return [events.Key(name, None)] if name else inner(self, sequence, alt)

    def feed(self: XTermParser, data: str) -> Iterable[Message]:
        yield from inner_feed(self, data)
        if data.endswith(ESCAPE):
            # the driver looks at the clock ten times a second only, which is too late
            _wait_for_more()
            yield from self.tick()

    setattr(parser, METHOD, keys)
    setattr(parser, "feed", feed)  # noqa: B010 - an assignment to a method is what it is
    setattr(parser, MARK, True)
