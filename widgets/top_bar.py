"""The first line of every screen: where we are, who needs me, what waits for a review, the time."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from widgets.cells import Piece, cut, total, two_sided
from widgets.lines import LineView

if TYPE_CHECKING:
    from textual.strip import Strip

    from themes.glyphs import Glyphs
    from widgets.paint import Paint

FULL_WIDTH = 100
"""From this width on the counts have words; below it they are sign and number."""


@dataclass(frozen=True, slots=True)
class TopBarValue:
    """What the line says."""

    workspace: str = ""
    working: int = 0
    waiting: int = 0
    review: int = 0
    failed: int = 0
    asks: int = 0
    """Held connections that wait for an answer."""
    denied: int = 0
    """What was refused since the machines run."""
    clock: str = ""


def count_pieces(
    value: TopBarValue, glyphs: Glyphs, paint: Paint, on: str, *, words: bool
) -> list[Piece]:
    """Return the counts; what is nought is quiet, never missing, so the eye finds its place."""
    entries = [
        (glyphs.working, value.working, "working", "state-working"),
        (glyphs.waiting, value.waiting, "waits" if value.waiting == 1 else "wait", "state-waiting"),
        (glyphs.done, value.review, "to review", "state-done"),
    ]
    if value.failed:
        entries.append((glyphs.failed, value.failed, "failed", "state-failed"))
    pieces: list[Piece] = []
    for sign, count, word, token in entries:
        lively = count > 0
        label = f" {count} {word}" if words else f" {count}"
        pieces.append((sign, paint(token if lively else "faint", on, "b" if lively else "")))
        pieces.append((label, paint("foreground" if lively else "muted", on)))
        pieces.append(("   " if words else "  ", paint(on=on)))
    return pieces


def egress_pieces(
    value: TopBarValue, glyphs: Glyphs, paint: Paint, on: str, *, words: bool
) -> list[Piece]:
    """Return what of the network waits for an answer, and what was refused."""
    asks, denied = value.asks, value.denied
    lead, many = "egress " if words else f"{glyphs.asks} ", "ask" if asks == 1 else "asks"
    quiet = paint("muted", on)
    return [
        (lead, quiet if words or not asks else paint("warning", on, "b")),
        (f"{asks}", paint("warning", on, "b") if asks else quiet),
        (f" {many} {glyphs.dot} " if words else f" {glyphs.failed} ", quiet),
        (f"{denied:,}", paint("error", on) if denied else quiet),
        (" denied   " if words else "  ", quiet),
    ]


class TopBar(LineView):
    """One line; nothing in it takes the focus."""

    DEFAULT_CSS = """
    TopBar { height: 1; width: 1fr; background: $panel; }
    """

    def __init__(self, *, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self.value = TopBarValue()

    def on_mount(self) -> None:
        """Keep the clock right."""
        super().on_mount()
        self.set_row_count(1)
        self.tick()
        self.set_interval(5, self.tick)

    def tick(self) -> None:
        """Show the time of day; draws only when the minute changed."""
        self.show(replace(self.value, clock=time.strftime("%H:%M")))

    def show(self, value: TopBarValue) -> None:
        """Show other facts."""
        value = replace(value, clock=value.clock or self.value.clock)
        if value != self.value:
            self.value = value
            self.redraw()

    def draw_row(self, row: int, width: int) -> Strip:
        """Draw the line."""
        paint, value = self.paint, self.value
        words = width >= FULL_WIDTH
        gap = " " * (10 if words else 2)
        left = [
            ("▌" if self.glyphs.edge == "▌" else " ", paint("accent", "panel")),
            ("cloche", paint("accent", "panel", "b")),
            (f"  {cut(value.workspace, max(8, width // 4))}", paint("foreground", "panel", "b")),
            (gap, paint(on="panel")),
            *count_pieces(value, self.glyphs, paint, "panel", words=words),
        ]
        clock = [(f"{value.clock} ", paint("muted", "panel"))]
        right = [*egress_pieces(value, self.glyphs, paint, "panel", words=True), *clock]
        if total(left) + total(right) > width:
            right = [*egress_pieces(value, self.glyphs, paint, "panel", words=False), *clock]
        return two_sided(left, right, width, paint(on="panel"), self.glyphs.ellipsis)
