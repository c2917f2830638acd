"""Places where a text was found: file, line, and what stands there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from widgets.cells import Piece, cells, shorten_path, two_sided
from widgets.diff_draw import find_ranges
from widgets.line_list import LineList

if TYPE_CHECKING:
    from textual.strip import Strip


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """One line that holds the text, or the file above its lines; all texts are safe to print."""

    key: str
    """Empty for a file, which cannot be chosen."""
    number: str
    text: str


class PlaceList(LineList[PlaceRow]):
    """One line a place, below its file."""

    BINDING_GROUP_TITLE = "Places"
    DEFAULT_CSS = """
    PlaceList { width: 1fr; height: 1fr; background: $panel; }
    """
    find = ""
    """What was searched for."""

    def item_key(self, item: PlaceRow) -> str | None:
        """Return what names the place; a file has no name."""
        return item.key or None

    def blank_style_token(self) -> str:
        """Use the dialog's background."""
        return "panel"

    def draw_item(self, item: PlaceRow, line: int, width: int, *, selected: bool) -> Strip:
        """Draw one place."""
        paint = self.paint
        on = "selection" if selected else "panel"
        blank = paint(on=on)
        if not item.key:
            name = shorten_path(item.text, max(4, width - 1), self.glyphs.ellipsis)
            return two_sided([(" ", blank), (name, paint("muted", on, "b"))], [], width, blank)
        left: list[Piece] = [
            (self.glyphs.edge if selected else " ", paint("accent", on)),
            (item.number, paint("diff-number", on)),
            ("  ", blank),
        ]
        text = item.text.lstrip().expandtabs(4)[: max(1, width)]
        at = 0
        for start, stop in find_ranges(text, self.find):
            left.append((text[at:start], paint("foreground", on)))
            left.append((text[start:stop], paint("diff-find-foreground", "diff-find", "b")))
            at = stop
        left.append((text[at:], paint("foreground", on)))
        return two_sided(
            [piece for piece in left if cells(piece[0])], [], width, blank, self.glyphs.ellipsis
        )
