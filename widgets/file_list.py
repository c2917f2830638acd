"""The changed files of a review: what was decided, what is risky, how much changed."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.message import Message

from widgets.cells import Piece, cells, shorten_path, two_sided
from widgets.line_list import LineList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.style import Style
    from textual import events
    from textual.strip import Strip

DECISION_TOKENS = {
    "open": "muted",
    "accepted": "success",
    "rejected": "error",
    "mixed": "warning",
}


SIGN = 1
"""Column of the decision."""

FOLD = 3
"""Column of a folder's sign, without its depth."""


class FileRow(NamedTuple):
    """One changed file or folder; all texts are already safe to print."""

    key: str
    path: str
    decision: str
    """Empty where nothing is decided about files."""
    letter: str = "M"
    """What happened: A added, M modified, D deleted, R renamed, T type, X mode."""
    added: int = 0
    removed: int = 0
    binary: bool = False
    risky: bool = False
    drift: bool = False
    note: bool = False
    """True when the file can be looked at but not merged."""
    conflict: bool = False
    """True when the last merge left it out because the user changed the same lines."""
    merged: bool = False
    """True when what was accepted is in the workspace."""
    viewed: bool = False
    depth: int = 0
    """How many folders are drawn above it."""
    folder: bool = False
    """The row stands for all files in a folder; its decision is what theirs add up to."""
    closed: bool = False
    """The files of the folder do not show."""
    done: int = 0
    """In a folder: how many files are decided, and of how many; no files: nothing is said."""
    total: int = 0


class FileList(LineList[FileRow]):
    """One line a file."""

    BINDING_GROUP_TITLE = "Files"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "sort", "order", show=False, tooltip="Another order", id="files.sort"),
        Binding(
            "h,left",
            "fold(True)",
            "close folder",
            show=False,
            tooltip="Close the folder, or go to the one around",
            id="files.close",
        ),
        Binding(
            "l,right",
            "fold(False)",
            "open folder",
            show=False,
            tooltip="Open the folder",
            id="files.unfold",
        ),
    ]
    DEFAULT_CSS = """
    FileList { width: 1fr; height: 1fr; background: $surface; }
    """

    @dataclass
    class SortWanted(Message):
        """The user wants another order."""

    @dataclass
    class FoldWanted(Message):
        """The user wants a folder closed or open."""

        key: str
        closed: bool

    @dataclass
    class MarkClicked(Message):
        """The user clicked the sign of a decision."""

        key: str

    def action_fold(self, closed: bool) -> None:
        """Close or open the folder under the cursor; a closed one gives way to the one around."""
        item = self.current
        if item is None:
            return
        if item.folder and item.closed != closed:
            self.post_message(self.FoldWanted(item.key, closed))
        elif closed:
            rows = range(self.cursor - 1, -1, -1)
            above = (row for row in rows if self.items[row].folder)
            target = next((row for row in above if self.items[row].depth < item.depth), -1)
            self._go(target)

    def on_click(self, event: events.Click) -> None:
        """Fold a folder by its sign, pass on a click on a decision, else select."""
        row = event.y + self.scroll_offset.y
        item = self.items[row] if 0 <= row < len(self.items) else None
        if item is not None and item.decision and event.x == SIGN:
            event.prevent_default()
            self.post_message(self.MarkClicked(item.key))
        elif item is not None and item.folder and event.x == FOLD + item.depth:
            event.prevent_default()
            self.post_message(self.FoldWanted(item.key, not item.closed))

    def action_sort(self) -> None:
        """Ask for another order."""
        self.post_message(self.SortWanted())

    def item_key(self, item: FileRow) -> str | None:
        """Return the path as it is, not as it is shown."""
        return item.key

    def blank_style_token(self) -> str:
        """Use the list's own background."""
        return "surface"

    count_widths = (0, 0)
    """Cells of the widest added and removed counts, so that numbers line up right."""

    def set_items(self, items: Sequence[FileRow]) -> None:
        """Show other files."""
        if len(items) == len(self.items) and all(map(operator.is_, items, self.items)):
            return
        added = max((item.added for item in items if not item.folder), default=0)
        removed = max((item.removed for item in items if not item.folder), default=0)
        widths = [len(str(count)) + 1 if count else 0 for count in (added, removed)]
        self.count_widths = (widths[0], widths[1])
        super().set_items(items)

    def forget_items(self) -> None:
        """Keep what is drawn: a drawn row is found by all that it depends on."""
        self.refresh()

    def row_key(self, row: int) -> object:
        """Name all that a row's look depends on."""
        item, selected = self.items[row], row == self.cursor
        return (item, selected, self.has_focus, self.count_widths)

    def draw_item(self, item: FileRow, line: int, width: int, *, selected: bool) -> Strip:
        """Draw one file."""
        paint, glyphs = self.paint, self.glyphs
        on = "surface"
        if selected:
            on = "selection" if self.has_focus else "selection-quiet"
        edge = glyphs.edge if selected else " "
        sign = glyphs.note if item.note else getattr(glyphs, item.decision or "blank")
        right = self._progress(item, on) if item.folder else self._counts(item, on)
        room = width - 6 - item.depth - sum(cells(text) for text, _ in right) - 1
        left: list[Piece] = [
            (edge, paint("accent" if self.has_focus else "faint", on)),
            (f"{sign}", paint(DECISION_TOKENS.get(item.decision, "muted"), on, "b")),
            self._flag(item, on),
            (" " * item.depth, paint(on=on)),
            (f" {self._kind(item)} ", paint("muted", on)),
            (shorten_path(item.path, max(4, room), glyphs.ellipsis), self._name_style(item, on)),
        ]
        return two_sided(left, right, width, paint(on=on), glyphs.ellipsis)

    def _kind(self, item: FileRow) -> str:
        if item.folder:
            return self.glyphs.folded if item.closed else self.glyphs.unfolded
        return item.letter

    def _name_style(self, item: FileRow, on: str) -> Style:
        if item.folder:
            return self.paint("muted", on)
        quiet = item.decision == "rejected" or item.note or item.viewed
        return self.paint("muted" if quiet else "foreground", on)

    def _progress(self, item: FileRow, on: str) -> list[Piece]:
        token = "success" if item.done == item.total else "muted"
        if not item.total:
            return self._counts(item, on) if item.closed else []
        return [(f" {item.done}/{item.total} ", self.paint(token, on))]

    def _flag(self, item: FileRow, on: str) -> Piece:
        if item.conflict:
            return (self.glyphs.drift, self.paint("error", on, "b"))
        if item.risky:
            return (self.glyphs.risky, self.paint("warning", on, "b"))
        if item.merged:
            return (self.glyphs.merged, self.paint("success", on, "b"))
        if item.drift:
            return (self.glyphs.drift, self.paint("warning", on, "b"))
        if item.viewed:
            return (self.glyphs.viewed, self.paint("muted", on))
        return (" ", self.paint(on=on))

    def _counts(self, item: FileRow, on: str) -> list[Piece]:
        paint, (added_width, removed_width) = self.paint, self.count_widths
        if item.binary:
            text = " bin".rjust(added_width + removed_width + 2)
            return [(f"{text} ", paint("muted", on))]
        added = f"+{item.added}" if item.added else ""
        removed = f"{self.glyphs.minus}{item.removed}" if item.removed else ""
        pieces = [(f" {added:>{added_width}}", paint("diff-added", on))]
        if removed_width:
            pieces.append((f" {removed:>{removed_width}}", paint("diff-removed", on)))
        return [*pieces, (" ", paint(on=on))]
