"""Cells of one terminal by their place: references, words, lines, links, and the text of spans.

Places count rows from the oldest of the scrollback (the engine's `SCREEN` coordinates). They mean
something until the terminal takes more output; a `Tracked` place stays on its text beyond that.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from vm.terminal.cell_text import TAIL, WIDE, WIDE_SHIFT
from vm.terminal.copy_text import Place, Span
from vm.terminal.ghostty import SUCCESS
from vm.terminal.screen import MAX_LINK, Unit

if TYPE_CHECKING:
    from vm.terminal.ghostty_terminal import Terminal


class Tracked:
    """A place that stays on its text while output moves it; `free` it before the terminal."""

    def __init__(self, grid: Grid, place: Place) -> None:
        self._grid = grid
        out = grid.ffi.new("GhosttyTrackedGridRef*")
        done = grid.terminal.ghostty.cast_track(
            grid.terminal.handle, grid.point("SCREEN", (place.x, place.y)), out
        )
        grid.terminal.ghostty.check(done, f"to track the cell {place}")
        self._handle = out[0]

    def place(self) -> Place | None:
        """Return where the text is now, None when it is gone."""
        lib, told = self._grid.lib, self._grid.coordinate
        return self._grid.told(
            lib.ghostty_tracked_grid_ref_point(self._handle, lib.GHOSTTY_POINT_TAG_SCREEN, told)
        )

    def free(self) -> None:
        """Stop tracking."""
        self._grid.lib.ghostty_tracked_grid_ref_free(self._handle)


class Grid:
    """The cells of one terminal."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.ffi, self.lib = terminal.ffi, terminal.lib
        self._point = self.ffi.new("ClochePoint*")
        self.coordinate = self.ffi.new("GhosttyPointCoordinate*")
        """Where the engine writes a place, to be read by `told`."""
        self._reference = terminal.ghostty.sized("GhosttyGridRef")
        self._cell = self.ffi.new("GhosttyCell*")
        self._uri = self.ffi.new("uint8_t[]", MAX_LINK + 1)
        self._length = self.ffi.new("size_t*")

    # -- references --------------------------------------------------------------------------

    def point(self, tag: str, cell: tuple[int, int]) -> Any:
        """Return a cell (x, y) in one of the engine's coordinate systems, to pass by value."""
        self._point.tag = getattr(self.lib, f"GHOSTTY_POINT_TAG_{tag}")
        self._point.value.x, self._point.value.y = cell
        return self._point[0]

    def reference(self, tag: str, cell: tuple[int, int]) -> Any:
        """Return a reference to a cell; it holds until the terminal changes."""
        reference = self.terminal.ghostty.sized("GhosttyGridRef")
        done = self.terminal.ghostty.cast_point(
            self.terminal.handle, self.point(tag, cell), reference
        )
        self.terminal.ghostty.check(done, f"the cell {cell}")
        return reference[0]

    def place(self, reference: Any) -> Place | None:
        """Return where a reference points to, None when it is in no row any more."""
        self._reference[0] = reference
        lib, told = self.lib, self.coordinate
        return self.told(
            lib.ghostty_terminal_point_from_grid_ref(
                self.terminal.handle, self._reference, lib.GHOSTTY_POINT_TAG_SCREEN, told
            )
        )

    def told(self, result: int) -> Place | None:
        """Return the place that the engine wrote, None when it is in no row any more."""
        y = int(self.coordinate.y)
        # a reflow can leave a reference behind, pointing below the last row
        if result != SUCCESS or y >= self.terminal.scrollbar()[0]:
            return None
        return Place(y, int(self.coordinate.x))

    def span(self, chosen: Any) -> Span | None:
        """Return the places of a selection of the engine."""
        first, last = self.place(chosen.start), self.place(chosen.end)
        if first is None or last is None:
            return None
        return Span(min(first, last), max(first, last))

    # -- what lies where ---------------------------------------------------------------------

    def half(self, place: Place) -> int:
        """Return WIDE or TAIL for a half of a wide character, else another number."""
        self._reference[0] = self.reference("SCREEN", (place.x, place.y))
        self.lib.ghostty_grid_ref_cell(self._reference, self._cell)
        return int(self._cell[0]) >> WIDE_SHIFT & 3

    def whole(self, span: Span) -> Span:
        """Return the span with wide characters at its ends taken as a whole."""
        first, last = span.first, span.last
        if first.x and self.half(first) == TAIL:
            first = Place(first.y, first.x - 1)
        if last.x + 1 < self.terminal.size()[0] and self.half(last) == WIDE:
            last = Place(last.y, last.x + 1)
        return span._replace(first=first, last=last)

    def around(self, place: Place, unit: Unit) -> Span:
        """Return what a selection by `unit` takes at a place."""
        if unit is Unit.WORD:
            return self.word(place)
        return self.line(place) if unit is Unit.LINE else Span(place, place)

    def word(self, place: Place) -> Span:
        """Return the word at a place as the engine cuts words; the cell alone when there is none.

        Paths, addresses and options are one word each.
        """
        options = self.terminal.ghostty.sized("GhosttyTerminalSelectWordOptions")
        options.ref = self.reference("SCREEN", (place.x, place.y))
        return self._selected("word", options) or Span(place, place)

    def line(self, place: Place) -> Span:
        """Return the logical line at a place, without blanks around it; or its cell."""
        options = self.terminal.ghostty.sized("GhosttyTerminalSelectLineOptions")
        options.ref = self.reference("SCREEN", (place.x, place.y))
        return self._selected("line", options) or Span(place, place)

    def _selected(self, what: str, options: Any) -> Span | None:
        chosen = self.terminal.ghostty.sized("GhosttySelection")
        select = getattr(self.lib, f"ghostty_terminal_select_{what}")
        if select(self.terminal.handle, options, chosen) != SUCCESS:
            return None
        return self.span(chosen)

    def links(self, y: int, columns: list[int]) -> list[bytes]:
        """Return the addresses of cells of row `y` of the visible page, b"" where there is none.

        One that is longer than `MAX_LINK` comes with one byte more than that, or as b"".
        """
        if not columns:
            return []
        reference = self._reference
        reference[0] = self.reference("VIEWPORT", (0, y))
        found: list[bytes] = []
        for x in columns:
            reference.x = x  # a reference names the row by its other two fields
            self._length[0] = 0
            done = self.lib.ghostty_grid_ref_hyperlink_uri(
                reference, self._uri, len(self._uri), self._length
            )
            known = done == SUCCESS and self._length[0] <= len(self._uri)
            found.append(bytes(self.ffi.buffer(self._uri, self._length[0])) if known else b"")
        return found

    # -- text --------------------------------------------------------------------------------

    def selection(
        self, tag: str, start: tuple[int, int], end: tuple[int, int], *, block: bool
    ) -> Any:
        """Return a selection between two cells (x, y) in one of the coordinate systems."""
        chosen = self.terminal.ghostty.sized("GhosttySelection")
        chosen.start, chosen.end = self.reference(tag, start), self.reference(tag, end)
        chosen.rectangle = block
        return chosen

    def everything(self) -> Any | None:
        """Return a selection of screen and scrollback, or None when there is nothing."""
        chosen = self.terminal.ghostty.sized("GhosttySelection")
        found = self.lib.ghostty_terminal_select_all(self.terminal.handle, chosen)
        return chosen if found == SUCCESS else None

    def text(self, chosen: Any, *, unwrap: bool) -> str:
        """Return the text of a selection without trailing blanks."""
        data = self.formatted(chosen, "PLAIN", unwrap=unwrap, trim=True)
        return data.decode("utf-8", "replace")

    def span_text(self, span: Span, *, unwrap: bool = True) -> str:
        """Return the text of a span: soft wraps joined, no blanks at the ends of lines."""
        first, last = (span.first.x, span.first.y), (span.last.x, span.last.y)
        return self.text(self.selection("SCREEN", first, last, block=span.block), unwrap=unwrap)

    def formatted(self, chosen: Any, form: str, *, unwrap: bool, trim: bool) -> bytes:
        """Return a selection in one of the engine's formats (PLAIN, VT)."""
        options = self.terminal.ghostty.sized("GhosttyTerminalSelectionFormatOptions")
        options.emit = getattr(self.lib, f"GHOSTTY_FORMATTER_FORMAT_{form}")
        options.unwrap, options.trim, options.selection = unwrap, trim, chosen
        call = functools.partial(
            self.lib.ghostty_terminal_selection_format_buf, self.terminal.handle, options[0]
        )
        return self.terminal.filled(call, "a selection's text")
