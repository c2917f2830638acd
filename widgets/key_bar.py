"""The last line: the keys that work now, made from the bindings; a click presses one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from widgets.cells import Piece, total, two_sided
from widgets.lines import LineView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.strip import Strip

    from themes.glyphs import Glyphs


@dataclass(frozen=True, slots=True)
class Hint:
    """One key as the line shows it."""

    key: str
    """How the key is written, such as `ctrl+r`."""
    label: str
    action: str = ""
    """What a click does; empty when it only tells."""
    enabled: bool = True


class KeyBar(LineView):
    """Hints in order of rank: what does not fit is left out from the end, the help key never."""

    DEFAULT_CSS = """
    KeyBar { height: 1; width: 1fr; background: $panel; }
    """

    @dataclass
    class Pressed(Message):
        """The user clicked a hint."""

        action: str

    def __init__(self, *, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self.hints: tuple[Hint, ...] = ()
        self.last: Hint | None = None
        self.lead: tuple[str, str] | None = None
        self._spans: list[tuple[int, int, Hint]] = []

    def on_mount(self) -> None:
        """One row."""
        super().on_mount()
        self.set_row_count(1)

    def show(
        self, hints: Sequence[Hint], last: Hint | None = None, lead: tuple[str, str] | None = None
    ) -> None:
        """Show other hints; `lead` is a text before them and its token, `last` stands right."""
        if (tuple(hints), last, lead) != (self.hints, self.last, self.lead):
            self.hints, self.last, self.lead = tuple(hints), last, lead
            self.redraw()

    def _pieces(self, hint: Hint) -> list[Piece]:
        paint = self.paint
        key = paint("accent" if hint.enabled else "faint", "panel", "b")
        return [(hint.key, key), (f" {hint.label}", paint("muted", "panel"))]

    def draw_row(self, row: int, width: int) -> Strip:
        """Draw the line and remember where each hint stands."""
        self._spans = []
        gap = "   " if width >= 100 else "  "
        right = self._last_hint(width)
        room = width - total(right) - (1 if self.last is None else len(gap))
        left = self._shown_hints(room, gap)
        while left and total(left) > width - total(right):
            left.pop()
        blank = self.paint(on="panel")
        return two_sided(left, right, width, blank, self.glyphs.ellipsis)

    def _last_hint(self, width: int) -> list[Piece]:
        """Return the hint at the right edge, if there is one."""
        if self.last is None:
            return []
        pieces = [*self._pieces(self.last), (" ", self.paint(on="panel"))]
        self._spans.append((width - total(pieces), width, self.last))
        return pieces

    def _shown_hints(self, room: int, gap: str) -> list[Piece]:
        """Return who gets the keys, and the hints that there is room for."""
        paint = self.paint
        left: list[Piece] = [(" ", paint(on="panel"))]
        if self.lead is not None:
            text, token = self.lead
            left += [(text, paint(token, "panel", "b")), (gap, paint(on="panel"))]
        used = total(left)
        for hint in self.hints:
            pieces = self._pieces(hint)
            length = total(pieces)
            if used + length <= room:
                self._spans.append((used, used + length, hint))
                left += [*pieces, (gap, paint(on="panel"))]
                used += length + len(gap)
        return left

    def on_click(self, event: events.Click) -> None:
        """Do what the hint under the pointer says."""
        for start, end, hint in self._spans:
            if start <= event.x < end and hint.action and hint.enabled:
                self.post_message(self.Pressed(hint.action))
                return
