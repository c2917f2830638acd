"""How a row of a diff looks: gutters, signs, colours, marks, side by side or unified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rich.segment import Segment
from textual.strip import Strip

from widgets.cells import Piece, total, two_sided
from widgets.diff_text import Expanded, styled, window, wrap_starts, wrapped_height

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.style import Style

    from themes.glyphs import Glyphs
    from widgets.diff_model import DiffDocument, DiffRow, Layout, Side
    from widgets.paint import Paint

EDGE = 2
"""Cells left of everything: the hunk's edge and the sign of its decision."""

PLAIN_FROM = 5000
"""Lines of more characters get no marks inside the line."""

SIGNS = {
    "accepted": "accepted",
    "rejected": "rejected",
    "mixed": "mixed",
    "open": "open",
    "shown": "blank",
}
"""Sign of each decision; `shown`: nothing is decided here."""

EDGES = {
    "accepted": "success",
    "rejected": "error",
    "mixed": "warning",
    "open": "faint",
    "shown": "faint",
}


@dataclass(frozen=True, slots=True)
class Look:
    """Everything besides the row that its drawing depends on."""

    layout: Layout
    width: int
    """Cells of the row without the overview column."""
    digits: int
    scroll: int = 0
    """First column of code that shows."""
    wrap: bool = False
    find: str = ""
    no_space: bool = False
    """Changes of white space alone look like unchanged lines."""

    @property
    def gutter(self) -> int:
        """Cells of one number column with its sign."""
        return self.digits + 3

    def code_width(self, side: Side) -> int:
        """Cells that a side's code has."""
        if self.layout == "unified":
            return max(1, self.width - EDGE - 2 * self.digits - 4)
        half = (self.width - EDGE - 1) // 2
        rest = self.width - EDGE - 1 - half
        return max(1, (half if side == "old" else rest) - self.gutter)


class RowState(NamedTuple):
    """What the user made of the row's hunk, and whether the cursor is there."""

    decision: str = ""
    """What was decided about the row; empty outside of hunks."""
    first: bool = False
    """The row bears the sign of the decision: the first of its hunk, each one of a mixed hunk."""
    old: str = ""
    """What was decided about the old side's line where that differs inside of the hunk."""
    new: str = ""
    chosen: bool = False
    """The row is among the lines that the next decision is about."""
    current: bool = False
    """The row belongs to the hunk under the cursor."""
    cursor: bool = False
    focused: bool = True
    remark: bool = False
    """A comment is about the row."""


def row_height(row: DiffRow, look: Look) -> int:
    """Return how many lines a row takes when long lines are wrapped."""
    if row.kind == "fold":
        return 1
    height = 1
    if row.old_text is not None and (look.layout == "split" or row.new_text is None):
        height = max(height, wrapped_height(row.old_text, look.code_width("old")))
    if row.new_text is not None:
        height = max(height, wrapped_height(row.new_text, look.code_width("new")))
    return height


class RowPainter:
    """Draws rows of one document."""

    def __init__(self, document: DiffDocument, paint: Paint, glyphs: Glyphs, *, plain: bool):
        """Draw `document`; `plain` says that colours alone cannot carry the marks."""
        self.document = document
        self.paint = paint
        self.glyphs = glyphs
        self.plain = plain
        self._marks: dict[tuple[int, int], tuple[Sequence[tuple[int, int]], ...]] = {}

    def note(self, text: str, width: int) -> Strip:
        """Draw a sentence about the file."""
        paint = self.paint
        left = [("  ", paint(on="diff-gap")), (text, paint("foreground", "diff-gap"))]
        return two_sided(left, [], width, paint(on="diff-gap"), self.glyphs.ellipsis)

    def aspect(self, text: str, look: Look, state: RowState) -> Strip:
        """Draw something about the whole file that is decided at once."""
        paint = self.paint
        on = "selection-quiet" if state.current else "diff-gap"
        token = "muted" if state.decision == "rejected" else "foreground"
        how = "s" if state.decision == "rejected" else ""
        edge = self._edge(state, 0, on)
        left = [*edge, (" ", paint(on=on)), (text, paint(token, on, how))]
        return two_sided(left, [], look.width, paint(on=on), self.glyphs.ellipsis)

    def fold(self, row: DiffRow, look: Look, state: RowState) -> Strip:
        """Draw a row that stands for unchanged lines."""
        paint, glyphs = self.paint, self.glyphs
        on = ("selection" if state.focused else "selection-quiet") if state.cursor else "diff-gap"
        noun = "line" if row.hidden == 1 else "lines"
        text = f" {glyphs.gap} {row.hidden} unchanged {noun}"
        edge = glyphs.edge if state.cursor else " "
        left = [
            (edge + " " * (EDGE - 1), paint("accent", on)),
            (" " * look.digits, paint(on=on)),
            (text, paint("muted", on)),
        ]
        right = [("enter shows them ", paint("accent", on))] if state.cursor else []
        return two_sided(left, right, look.width, paint(on=on), glyphs.ellipsis)

    def line(self, row: DiffRow, line: int, look: Look, state: RowState) -> Strip:
        """Draw line `line` of a row (only wrapped rows have more than one)."""
        edge = self._edge(state, line)
        if look.layout == "unified":
            pieces = self._unified(row, line, look, state)
        else:
            divider = (self.glyphs.divider, self.paint("faint"))
            pieces = [
                *self._side(row, "old", line, look, state),
                divider,
                *self._side(row, "new", line, look, state),
            ]
        segments = [Segment(text, style) for text, style in (*edge, *pieces) if text]
        return Strip(segments, look.width)

    def _edge(self, state: RowState, line: int, on: str = "background") -> list[Piece]:
        paint, glyphs = self.paint, self.glyphs
        if state.chosen:
            return [(glyphs.edge + glyphs.cursor, paint("accent", on, "b"))]
        if not state.decision:
            return [((glyphs.edge if state.cursor else " ") + " ", paint("accent", on))]
        token = EDGES[state.decision]
        edge = glyphs.edge if state.current else glyphs.bar
        edge_token = "accent" if state.current and state.focused else token
        sign = getattr(glyphs, SIGNS[state.decision]) if state.first and line == 0 else " "
        sign_token = "muted" if state.decision == "open" else token
        return [(edge, paint(edge_token, on)), (str(sign), paint(sign_token, on, "b"))]

    def _unified(self, row: DiffRow, line: int, look: Look, state: RowState) -> list[Piece]:
        side: Side = "old" if row.new_text is None else "new"
        kind = "-" if row.kind == "delete" else "+" if row.kind == "insert" else " "
        state = _of_side(state, side)
        on = self._background(kind, state, self._is_quiet(row, side, look))
        numbers = [row.old_no if kind != "+" else None, row.new_no if kind != "-" else None]
        text = " ".join(self._number(number, look.digits, line) for number in numbers)
        gutter = [
            (text, self._number_style(on, state)),
            self._sign(kind, on, line, state, warn=row.suspicious),
        ]
        return gutter + self._code(row, side, kind, line, look, state, on)

    def _side(
        self, row: DiffRow, side: Side, line: int, look: Look, state: RowState
    ) -> list[Piece]:
        number = row.old_no if side == "old" else row.new_no
        text = row.old_text if side == "old" else row.new_text
        width = look.gutter + look.code_width(side)
        if text is None:
            quiet = "d" if self.plain else ""
            return [(self.glyphs.hatch * width, self.paint("diff-hatch", how=quiet))]
        changed = row.kind != "context"
        state = _of_side(state, side)
        kind = ("-" if side == "old" else "+") if changed else " "
        on = self._background(kind, state, self._is_quiet(row, side, look))
        over = line > 0 and line >= wrapped_height(text, look.code_width(side))
        sign = self._sign(kind, on, line, state, warn=row.suspicious)
        gutter = [
            (self._number(number, look.digits, line), self._number_style(on, state)),
            ("   ", self.paint(on=on)) if over else sign,
        ]
        return gutter + self._code(row, side, kind, line, look, state, on)

    def _number(self, number: int | None, digits: int, line: int) -> str:
        return " " * digits if number is None or line else str(number).rjust(digits)

    def _number_style(self, on: str, state: RowState) -> Style:
        if state.cursor and state.focused:
            return self.paint("foreground", "selection", "b")
        if state.chosen:
            return self.paint("foreground", "selection-quiet")
        return self.paint("diff-number", on)

    def _sign(self, kind: str, on: str, line: int, state: RowState, *, warn: bool = False) -> Piece:
        token = {"-": "diff-removed", "+": "diff-added"}.get(kind, "muted")
        if state.decision == "rejected":
            token = "muted"
        shown = self.glyphs.minus if kind == "-" else kind
        if line:
            shown = self.glyphs.wrap
            token = "faint"
        if state.remark and not line:
            return (f"{self.glyphs.comment}{shown} ", self.paint("accent", on, "b"))
        if warn and not line:
            return (f"{self.glyphs.stalled}{shown} ", self.paint("warning", on, "b"))
        return (f" {shown} ", self.paint(token, on, "b"))

    def _is_quiet(self, row: DiffRow, side: Side, look: Look) -> bool:
        """Return whether a changed line is none to look at: moved, or white space alone."""
        line = row.old if side == "old" else row.new
        if line is None:
            return False
        document = self.document
        spaces = look.no_space and document.only_space(side, line)
        return spaces or (side, line) in document.moved

    def _background(self, kind: str, state: RowState, quiet: bool) -> str:
        if kind == " " or state.decision == "rejected":
            return "background"
        if quiet:
            return "diff-gap"
        return "diff-removed-soft" if kind == "-" else "diff-added-soft"

    def _code(
        self, row: DiffRow, side: Side, kind: str, line: int, look: Look, state: RowState, on: str
    ) -> list[Piece]:
        width = look.code_width(side)
        text = (row.old_text if side == "old" else row.new_text) or ""
        expanded = Expanded(text)
        first, last = self._visible(expanded.text, line, width, look)
        number = row.old if side == "old" else row.new
        spans = () if number is None else self.document.spans.get(side, {}).get(number, ())
        plain = kind == " " or len(text) > PLAIN_FROM or self._is_quiet(row, side, look)
        marks = () if plain else self._marks_of(row, side)
        finds = find_ranges(text, look.find) if look.find else ()
        pieces = styled(
            expanded,
            first,
            last,
            (spans, marks, finds),
            lambda name, layer: self._style(name, layer, kind, on, state),
        )
        ending = row.old_end if side == "old" else row.new_end
        if last == len(expanded.text) and (first < last or not line):
            if ending:
                pieces.append((ending, self.paint("warning", on)))
            moved = "" if number is None else self.document.moved.get((side, number), "")
            if moved:
                pieces.append((f"  {self.glyphs.rename} {moved}", self.paint("accent", on)))
        return self._padded(pieces, expanded.text, last, width, look, on)

    def _padded(
        self, pieces: list[Piece], text: str, last: int, width: int, look: Look, on: str
    ) -> list[Piece]:
        room = width - total(pieces)
        while room < 0:  # only what is said at the end had no room
            room += total(pieces[-1:])
            pieces = pieces[:-1]
        if room == 0 and last < len(text) and not look.wrap and pieces:
            tail, style = pieces[-1]
            pieces[-1] = (tail[:-1], style)
            used = total(pieces)
            mark = " " * (width - used - 1) + self.glyphs.more
            return [*pieces, (mark, self.paint("muted", on, "b"))]
        return [*pieces, (" " * room, self.paint(on=on))]

    def _visible(self, text: str, line: int, width: int, look: Look) -> tuple[int, int]:
        if not look.wrap:
            return window(text, look.scroll, width)
        starts = [*wrap_starts(text, width), len(text)]
        if line >= len(starts) - 1:
            return len(text), len(text)
        return starts[line], starts[line + 1]

    def _style(self, name: str, layer: str, kind: str, on: str, state: RowState) -> Style:
        paint = self.paint
        if layer == "find":
            return paint("diff-find-foreground", "diff-find", "b")
        if state.decision == "rejected" and kind != " ":
            return paint("muted", on, "s" if kind == "+" else "")
        if layer == "mark":
            base = "diff-removed-mark" if kind == "-" else "diff-added-mark"
            return paint(f"{base}-foreground", base, "u" if self.plain else "")
        token = f"syntax-{name}" if name else "foreground"
        return paint(token, on)

    def _marks_of(self, row: DiffRow, side: Side) -> Sequence[tuple[int, int]]:
        old, new = row.old, row.new
        if old is None and new is not None:
            old = self.document.partner("new", new)
        elif new is None and old is not None:
            new = self.document.partner("old", old)
        if old is None or new is None:
            return ()
        found = self._marks.get((old, new))
        if found is None:
            found = self._marks[old, new] = self.document.intraline(old, new)
        return found[0 if side == "old" else 1]


def _of_side(state: RowState, side: Side) -> RowState:
    """Return the state with the decision about one side's line in place of the row's."""
    decision = state.old if side == "old" else state.new
    return state._replace(decision=decision) if decision and decision != state.decision else state


def find_ranges(text: str, needle: str) -> list[tuple[int, int]]:
    """Return where `needle` stands in `text`, regardless of case."""
    folded, wanted = text.lower(), needle.lower()
    if len(folded) != len(text):  # a few letters change their length when lowered
        folded, wanted = text, needle
    ranges: list[tuple[int, int]] = []
    at = folded.find(wanted)
    while at >= 0:
        ranges.append((at, at + len(wanted)))
        at = folded.find(wanted, at + max(1, len(wanted)))
    return ranges
