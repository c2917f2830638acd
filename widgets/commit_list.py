"""The commits of a review: who made each, how much it changed, whether it wants a closer look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from widgets.cells import Piece, two_sided
from widgets.line_list import LineList

if TYPE_CHECKING:
    from textual.strip import Strip


@dataclass(frozen=True, slots=True)
class CommitRow:
    """One commit, or all of a branch; all texts are already safe to print."""

    key: str
    title: str
    """What the commit says in its first line; the name of a branch."""
    about: str
    """Who, when and how many files; how many commits of a branch."""
    short: str = ""
    """The beginning of the commit's name; empty for a branch."""
    added: int = 0
    removed: int = 0
    flagged: bool = False
    """There is something that wants a closer look."""
    merge: bool = False


class CommitList(LineList[CommitRow]):
    """Two lines a commit."""

    BINDING_GROUP_TITLE = "Commits"
    DEFAULT_CSS = """
    CommitList { width: 1fr; height: 1fr; background: $surface; }
    """

    def item_key(self, item: CommitRow) -> str | None:
        """Return what names the commit or the branch."""
        return item.key

    def item_height(self, item: CommitRow) -> int:
        """Two lines."""
        return 2

    def blank_style_token(self) -> str:
        """Use the list's own background."""
        return "surface"

    def draw_item(self, item: CommitRow, line: int, width: int, *, selected: bool) -> Strip:
        """Draw one line of a commit."""
        paint, glyphs = self.paint, self.glyphs
        on = "surface"
        if selected:
            on = "selection" if self.has_focus else "selection-quiet"
        edge = (
            glyphs.edge if selected else " ",
            paint("accent" if self.has_focus else "faint", on),
        )
        blank = paint(on=on)
        if line:
            left = [edge, ("  ", blank), (item.about, paint("muted", on))]
            merge = [("  merge ", paint("muted", on))] if item.merge else []
            return two_sided(left, merge, width, blank, glyphs.ellipsis)
        flag = (glyphs.risky if item.flagged else " ", paint("warning", on, "b"))
        name: list[Piece] = [(f"{item.short} ", paint("accent", on))] if item.short else []
        title = (item.title, paint("foreground", on, "" if item.short else "b"))
        return two_sided(
            [edge, flag, *name, title], self._counts(item, on), width, blank, glyphs.ellipsis
        )

    def _counts(self, item: CommitRow, on: str) -> list[Piece]:
        paint = self.paint
        pieces: list[Piece] = []
        if item.added:
            pieces.append((f" +{item.added}", paint("diff-added", on)))
        if item.removed:
            pieces.append((f" {self.glyphs.minus}{item.removed}", paint("diff-removed", on)))
        return [*pieces, (" ", paint(on=on))]
