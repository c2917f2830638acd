"""The changed files of a review: what was decided, what is risky, how much changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from widgets.cells import Piece, cells, shorten_path, two_sided
from widgets.line_list import LineList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.strip import Strip

DECISION_TOKENS = {
    "open": "muted",
    "accepted": "success",
    "rejected": "error",
    "mixed": "warning",
}


@dataclass(frozen=True, slots=True)
class FileRow:
    """One changed file; all texts are already safe to print."""

    key: str
    path: str
    decision: str
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


class FileList(LineList[FileRow]):
    """One line a file."""

    BINDING_GROUP_TITLE = "Files"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "sort", "order", show=False, tooltip="Another order", id="files.sort"),
    ]
    DEFAULT_CSS = """
    FileList { width: 1fr; height: 1fr; background: $surface; }
    """

    @dataclass
    class SortWanted(Message):
        """The user wants another order."""

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
        added = max((item.added for item in items), default=0)
        removed = max((item.removed for item in items), default=0)
        widths = [len(str(count)) + 1 if count else 0 for count in (added, removed)]
        self.count_widths = (widths[0], widths[1])
        super().set_items(items)

    def draw_item(self, item: FileRow, line: int, width: int, *, selected: bool) -> Strip:
        """Draw one file."""
        paint, glyphs = self.paint, self.glyphs
        on = "surface"
        if selected:
            on = "selection" if self.has_focus else "selection-quiet"
        edge = glyphs.edge if selected else " "
        sign = getattr(glyphs, item.decision) if not item.note else glyphs.note
        right = self._counts(item, on)
        room = width - 6 - sum(cells(text) for text, _ in right) - 1
        quiet = item.decision in ("rejected",) or item.note
        left: list[Piece] = [
            (edge, paint("accent" if self.has_focus else "faint", on)),
            (f"{sign}", paint(DECISION_TOKENS[item.decision], on, "b")),
            self._flag(item, on),
            (f" {item.letter} ", paint("muted", on)),
            (
                shorten_path(item.path, max(4, room), glyphs.ellipsis),
                paint("muted" if quiet else "foreground", on),
            ),
        ]
        return two_sided(left, right, width, paint(on=on), glyphs.ellipsis)

    def _flag(self, item: FileRow, on: str) -> Piece:
        if item.conflict:
            return (self.glyphs.drift, self.paint("error", on, "b"))
        if item.risky:
            return (self.glyphs.risky, self.paint("warning", on, "b"))
        if item.merged:
            return (self.glyphs.merged, self.paint("success", on, "b"))
        if item.drift:
            return (self.glyphs.drift, self.paint("warning", on, "b"))
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
