"""All sessions at a glance: grouped by workspace, with state, size of changes, and one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from widgets.cells import Piece, cells, cut, total, two_sided
from widgets.line_list import LineList
from widgets.lines import LineView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.strip import Strip

    from themes.glyphs import Glyphs
    from widgets.paint import Paint


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session; all texts are already safe to print."""

    key: str
    number: int
    """1 to 9 where `alt+N` reaches it, else 0."""
    state: str
    """Name of a state in the theme: starting, working, waiting, …"""
    sign: str
    agent: str
    name: str
    status: str
    """The state in words."""
    age: str = ""
    """How long ago the session began, such as `3m`."""
    added: int = 0
    removed: int = 0
    files: int = 0
    message: str = ""
    live: bool = False
    """True while there is a machine."""
    marked: bool = False
    """True while its agent rang or notified and nobody has looked since."""
    wants: str = ""
    """Where a held connection of it wants to."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A line that cannot be chosen."""

    text: str
    first: bool = False


RailItem = SessionRow | Heading


def change_pieces(
    row: SessionRow, glyphs: Glyphs, paint: Paint, on: str, *, files: bool = True
) -> list[Piece]:
    """Return `+42 −7 · 3 files`, or nothing when there are no changes."""
    if not row.files:
        return []
    pieces: list[Piece] = [
        (f"+{row.added}", paint("diff-added", on)),
        (f" {glyphs.minus}{row.removed}", paint("diff-removed", on)),
    ]
    if files:
        noun = "file" if row.files == 1 else "files"
        pieces.append((f" {glyphs.dot} {row.files} {noun}", paint("muted", on)))
    return pieces


class SessionRail(LineList[RailItem]):
    """The list of sessions, two lines each."""

    BINDING_GROUP_TITLE = "Sessions"
    DEFAULT_CSS = """
    SessionRail { width: 1fr; height: 1fr; background: $surface; }
    """

    pulse = False
    """Every other second the sign of a working session is drawn quietly."""

    def item_key(self, item: RailItem) -> str | None:
        """Return no key for headings."""
        return item.key if isinstance(item, SessionRow) else None

    def item_height(self, item: RailItem) -> int:
        """Give a session two lines, and a heading one above it that is empty but for the first."""
        if isinstance(item, Heading):
            return 1 if item.first else 2
        return 2

    def blank_style_token(self) -> str:
        """Use the rail's own background."""
        return "surface"

    def draw_item(self, item: RailItem, line: int, width: int, *, selected: bool) -> Strip:
        """Draw a heading or one of a session's two lines."""
        paint = self.paint
        if isinstance(item, Heading):
            text = f" {item.text}" if line == self.item_height(item) - 1 else ""
            return two_sided([(text, paint("muted", "surface"))], [], width, paint(on="surface"))
        on = "surface"
        if selected:
            on = "selection" if self.has_focus else "selection-quiet"
        edge_token = "accent" if self.has_focus else "faint"
        edge = (self.glyphs.edge if selected else " ", paint(edge_token, on))
        pieces = self._first(item, on, width) if line == 0 else self._second(item, on, width - 1)
        right = [(f" {item.age} ", paint("muted", on))] if line == 0 else []
        return two_sided([edge, *pieces], right, width, paint(on=on), self.glyphs.ellipsis)

    def beat(self, *, quiet: bool) -> None:
        """Move the signs of working sessions."""
        if any(isinstance(item, SessionRow) and item.state == "working" for item in self.items):
            self.pulse = quiet
            self.redraw()

    def _first(self, row: SessionRow, on: str, width: int) -> list[Piece]:
        paint = self.paint
        number = str(row.number) if row.number else " "
        beat = "muted" if self.pulse and row.state == "working" else f"state-{row.state}"
        room = max(4, width - 18)
        name_token = "foreground" if row.live else "muted"
        return [
            (f"{number} ", paint("muted", on)),
            (f"{row.sign} ", paint(beat, on, "b")),
            (f"{cut(row.name, room, self.glyphs.ellipsis)} ", paint(name_token, on, "b")),
            (f"{self.glyphs.bell} " if row.marked else " ", paint("warning", on, "b")),
            (f"{self.glyphs.asks} " if row.wants else "", paint("warning", on, "b")),
            (row.agent, paint("muted", on)),
        ]

    def _second(self, row: SessionRow, on: str, width: int) -> list[Piece]:
        paint, glyphs = self.paint, self.glyphs
        blank = (" " * 4, paint(on=on))
        if row.wants:
            room = max(1, width - 11)  # the end of a host says whose it is
            mark = self.glyphs.ellipsis
            text = row.wants if len(row.wants) <= room else mark + row.wants[1 - room :]
            return [blank, (f"wants {text}", paint("warning", on))]
        if row.message:
            return [blank, (row.message, paint(f"state-{row.state}", on))]
        status = (row.status, paint(f"state-{row.state}", on))
        begin: list[Piece] = [blank, status, (f" {glyphs.dot} ", paint("muted", on))]
        changes = change_pieces(row, glyphs, paint, on)
        if total([*begin, *changes]) >= width:
            changes = change_pieces(row, glyphs, paint, on, files=False)
        return [*begin, *changes] if changes else begin[:2]


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that waits for the user."""

    key: str
    state: str
    sign: str
    text: str
    host: str = ""
    """Where a held connection wants to, or what it is about; its end is always seen."""


class NeedsList(LineList[Need]):
    """Who needs me; enter goes there."""

    BINDING_GROUP_TITLE = "Needs you"
    DEFAULT_CSS = """
    NeedsList { width: 1fr; height: auto; max-height: 8; background: $surface; }
    """

    def item_key(self, item: Need) -> str | None:
        """Return the session that needs somebody."""
        return item.key

    def blank_style_token(self) -> str:
        """Use the rail's own background."""
        return "surface"

    def draw_item(self, item: Need, line: int, width: int, *, selected: bool) -> Strip:
        """Draw one need."""
        paint = self.paint
        on = "selection" if selected and self.has_focus else "surface"
        edge = self.glyphs.edge if selected and self.has_focus else " "
        left = [
            (edge, paint("accent", on)),
            (f"{item.sign} ", paint(f"state-{item.state}", on, "b")),
        ]
        if item.host:
            text, host = self._in_room(item, width - 4)
            left += [(text, paint("foreground", on)), (host, paint("foreground", on, "b"))]
        else:
            left.append((item.text, paint("foreground", on)))
        return two_sided(left, [], width, paint(on=on), self.glyphs.ellipsis)

    def _in_room(self, item: Need, width: int) -> tuple[str, str]:
        """Return who and where to in so many cells: half of them at least are the host's."""
        mark = self.glyphs.ellipsis
        text = cut(item.text, max(width // 2, width - len(item.host)), mark)
        room = max(1, width - cells(text))
        if len(item.host) <= room:
            return text, item.host
        lead = "" if text != item.text else mark  # one mark says that something is left out
        return text, lead + item.host[len(lead) - room :]


class SessionStrip(LineView, can_focus=True):
    """The rail in one line, for narrow screens: the same keys, and a click selects."""

    BINDING_GROUP_TITLE = "Sessions"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down,l,right", "move(1)", "next session", show=False, id="strip.next"),
        Binding("k,up,h,left", "move(-1)", "previous session", show=False, id="strip.previous"),
        Binding("g,home", "edge(0)", "first session", show=False, id="strip.first"),
        Binding("G,end", "edge(-1)", "last session", show=False, id="strip.last"),
    ]
    DEFAULT_CSS = """
    SessionStrip { height: 1; width: 1fr; background: $surface; }
    """

    def __init__(self, *, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self.rows: tuple[SessionRow, ...] = ()
        self.current = ""
        self._spans: list[tuple[int, int, str]] = []

    def on_mount(self) -> None:
        """One row."""
        super().on_mount()
        self.set_row_count(1)

    def show(self, rows: Sequence[SessionRow], current: str) -> None:
        """Show other sessions."""
        new = (tuple(rows), current)
        if new != (self.rows, self.current):
            self.rows, self.current = new
            self.redraw()

    def on_focus(self) -> None:
        """Show where the keys go."""
        self.redraw()

    def on_blur(self) -> None:
        """Show that the keys go elsewhere."""
        self.redraw()

    def action_move(self, step: int) -> None:
        """Go to a neighbour."""
        keys = [row.key for row in self.rows]
        if self.current in keys:
            position = keys.index(self.current) + step
            if 0 <= position < len(keys):
                self.post_message(LineList.Moved(self, keys[position]))

    def action_edge(self, position: int) -> None:
        """Go to the first or the last session."""
        if self.rows:
            self.post_message(LineList.Moved(self, self.rows[position].key))

    def draw_row(self, row: int, width: int) -> Strip:
        """Draw as many sessions as fit, the current one always among them."""
        first = 0
        while True:
            pieces, fits = self._draw_from(first, width)
            if fits or first >= len(self.rows) - 1:
                more = [("  +more ", self.paint("muted", "surface"))] if not fits else []
                return two_sided(pieces, more, width, self.paint(on="surface"), "")
            if any(key == self.current for _, _, key in self._spans):
                hidden = len(self.rows) - len(self._spans) - first
                tail = [(f" +{hidden} ", self.paint("muted", "surface"))]
                return two_sided(pieces, tail, width, self.paint(on="surface"), "")
            first += 1

    def _draw_from(self, first: int, width: int) -> tuple[list[Piece], bool]:
        paint = self.paint
        pieces: list[Piece] = []
        self._spans = []
        used = 0
        for row in self.rows[first:]:
            chosen = row.key == self.current
            on = "surface"
            if chosen:
                on = "selection" if self.has_focus else "selection-quiet"
            number = f"{row.number} " if row.number else ""
            chip = [
                (self.glyphs.edge if chosen else " ", paint("accent", on)),
                (number, paint("muted", on)),
                (f"{row.sign} ", paint(f"state-{row.state}", on, "b")),
                (f"{cut(row.name, 16, self.glyphs.ellipsis)} ", paint("foreground", on)),
                (f"{self.glyphs.bell} " if row.marked else "", paint("warning", on, "b")),
                (f"{self.glyphs.asks} " if row.wants else "", paint("warning", on, "b")),
            ]
            length = sum(len(text) for text, _ in chip)
            if used + length > width - 6:
                return pieces, False
            self._spans.append((used, used + length, row.key))
            pieces += chip
            used += length
        return pieces, True

    def on_click(self, event: events.Click) -> None:
        """Select the session under the pointer."""
        for start, end, key in self._spans:
            if start <= event.x < end:
                self.post_message(LineList.Moved(self, key))
                return
