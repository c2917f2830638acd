"""The line above a pane: which session it is, how it is, what it changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from widgets.cells import Piece, two_sided
from widgets.lines import LineView
from widgets.session_rail import change_pieces

if TYPE_CHECKING:
    from textual import events
    from textual.strip import Strip

    from themes.glyphs import Glyphs
    from widgets.session_rail import SessionRow


class PaneHeader(LineView):
    """One line; a click on it focuses the pane."""

    DEFAULT_CSS = """
    PaneHeader { height: 1; width: 1fr; background: $surface; }
    """

    def __init__(self, *, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self.row: SessionRow | None = None
        self.active = False
        self.trouble = ""
        self.back = 0

    def on_mount(self) -> None:
        """One row."""
        super().on_mount()
        self.set_row_count(1)

    def show(self, row: SessionRow, *, active: bool, trouble: str = "", back: int = 0) -> None:
        """Show a session.

        `active`: its pane has the keys; `trouble`: what ails its terminal; `back`: lines of newer
        output below what is shown.
        """
        if (row, active, trouble, back) != (self.row, self.active, self.trouble, self.back):
            self.row, self.active, self.trouble, self.back = row, active, trouble, back
            self.redraw()

    def draw_row(self, row: int, width: int) -> Strip:
        """Draw the line."""
        paint, on = self.paint, "accent-soft" if self.active else "panel"
        session = self.row
        if session is None:
            return two_sided([], [], width, paint(on=on))
        number = f"{session.number}  " if session.number else ""
        name_token = "foreground" if session.live else "muted"
        left: list[Piece] = [
            (f" {number}", paint("accent" if self.active else "muted", on, "b")),
            (session.name, paint(name_token, on, "b")),
            (f"  {session.agent}", paint("muted", on)),
        ]
        if self.active:
            left.append((f"  {self.glyphs.keys}", paint("accent", on, "b")))
        if self.back:
            noun = "line" if self.back == 1 else "lines"
            text = f"  {self.glyphs.back} {self.back} {noun} back"
            left.append((text, paint("warning", on, "b")))
        if self.trouble:
            text = f"  {self.glyphs.stalled} {self.trouble}"
            left.append((text, paint("warning", on)))
        changes = change_pieces(session, self.glyphs, paint, on, files=width >= 50)
        right: list[Piece] = [
            (f" {session.sign} ", paint(f"state-{session.state}", on, "b")),
            (session.status, paint(f"state-{session.state}", on)),
            (f"  {session.age}", paint("muted", on)),
            ("   " if changes else " ", paint(on=on)),
            *changes,
            (" " if changes else "", paint(on=on)),
        ]
        return two_sided(left, right, width, paint(on=on), self.glyphs.ellipsis)

    def on_click(self, event: events.Click) -> None:
        """Focus what stands below."""
        if self.parent is not None:
            focusable = self.parent.query("*:can-focus")
            if focusable:
                focusable.first().focus()
