"""What a guest asks for: a strip that never takes the focus or a key by itself.

The guest chooses the moment of its question, so what is typed at that moment is meant for something
else. Only the user gives the strip the keys (the prefix and `e`, or a click), and also then they
count a moment later. One question is shown at a time, and a source has one: its newest takes the
place of the one before. While the strip has the keys the question that is shown stays until it is
answered or withdrawn, so that no other one can slip under the finger.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from textual.message import Message

from widgets.cells import Piece, two_sided
from widgets.lines import LineView

if TYPE_CHECKING:
    from textual import events
    from textual.strip import Strip

    from themes.glyphs import Glyphs

COUNT_AFTER = 0.5
"""Seconds after which a key counts, from when the strip got the focus or shows another question."""

MAX_ASKS = 32
"""Questions that may wait; a guest that asks more is not heard."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One question; all texts are already safe to print."""

    source: str
    """Who asks: a session's id."""
    text: str
    detail: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    """Keys and what they answer."""
    payload: str = ""
    """What it is about, for whoever acts on the answer."""


class AskStrip(LineView, can_focus=True):
    """Two lines over the screen: who wants what, and how to answer."""

    BINDING_GROUP_TITLE = "Question of an agent"
    DEFAULT_CSS = """
    AskStrip { height: 2; width: 1fr; display: none; background: $raised; }
    AskStrip.-shown { display: block; }
    """

    @dataclass
    class Answered(Message):
        """The user answered with one of the keys."""

        ask: Ask
        key: str

    @dataclass
    class Left(Message):
        """The user gave the keys back without an answer, or there is nothing to answer any more."""

        strip: AskStrip

    def __init__(self, *, glyphs: Glyphs, opener: str, id: str | None = None) -> None:
        """Ask nothing yet; `opener` is how the keys that give the strip the focus are written."""
        super().__init__(glyphs=glyphs, id=id)
        self.asks: tuple[Ask, ...] = ()
        self._opener = opener
        self._count_from = 0.0

    @property
    def shown(self) -> Ask | None:
        """The question that can be answered now."""
        return self.asks[0] if self.asks else None

    def put(self, ask: Ask) -> None:
        """Ask; it takes the place of what the same source asked before, but for what is answered.

        That one stays while the strip has the keys, and the newer one waits behind the others.
        """
        answering = self.shown if self.has_focus else None
        places = [i for i, a in enumerate(self.asks) if a.source == ask.source and a != answering]
        asks = [a for i, a in enumerate(self.asks) if i not in places]
        if len(asks) < MAX_ASKS:
            asks.insert(places[0] if places else len(asks), ask)
            self._set(tuple(asks))

    def keep_only(self, sources: set[str]) -> None:
        """Withdraw the questions of everybody else."""
        self._set(tuple(ask for ask in self.asks if ask.source in sources))

    def _set(self, asks: tuple[Ask, ...]) -> None:
        before, self.asks = self.shown, asks
        if self.shown != before:
            self._count_from = time.monotonic() + COUNT_AFTER
        self.set_class(bool(asks), "-shown")
        self.set_row_count(2)
        self.redraw()
        if not asks and before is not None:
            self.post_message(self.Left(self))

    def on_focus(self) -> None:
        """Show the answers; they count a moment later."""
        self._count_from = time.monotonic() + COUNT_AFTER
        self.redraw()

    def blur(self) -> Self:
        """Keep the keys while hidden, so that no neighbour gets them: `Left` gives them back."""
        return super().blur() if self.asks else self

    def on_blur(self) -> None:
        """Show how to come back."""
        self.redraw()

    def on_key(self, event: events.Key) -> None:
        """Take an answer; no key goes anywhere else from here."""
        event.stop()
        event.prevent_default()
        ask = self.shown
        if ask is None or event.time < self._count_from:
            return
        if event.key in dict(ask.choices):
            self._set(self.asks[1:])
            self.post_message(self.Answered(ask, event.key))
        elif event.key == "escape":
            self.post_message(self.Left(self))

    def draw_row(self, row: int, width: int) -> Strip:
        """Draw the question, or how to answer it."""
        paint, ask = self.paint, self.shown
        on = "raised"
        edge: Piece = (f"{self.glyphs.edge} ", paint("warning", on, "b"))
        blank = paint(on=on)
        if ask is None:
            return two_sided([], [], width, blank)
        if row == 0:
            more = len(self.asks) - 1
            right = [(f" {more} more ", paint("muted", on))] if more else []
            left = [edge, (f"{self.glyphs.waiting} {ask.text}", paint("foreground", on, "b"))]
            return two_sided(left, right, width, blank, self.glyphs.ellipsis)
        left = [edge, *self._answers(ask)]
        detail: list[Piece] = [(f"  {ask.detail}", paint("muted", on))] if ask.detail else []
        return two_sided([*left, *detail], [], width, blank, self.glyphs.ellipsis)

    def _answers(self, ask: Ask) -> list[Piece]:
        paint, on = self.paint, "raised"
        if not self.has_focus:
            return [(self._opener, paint("warning", on, "b")), (" answers", paint("muted", on))]
        pieces: list[Piece] = []
        for key, label in (*ask.choices, ("esc", "later")):
            pieces += [(key, paint("accent", on, "b")), (f" {label}   ", paint("muted", on))]
        return pieces

    def blank_style_token(self) -> str:
        """Use the strip's own background."""
        return "raised"
