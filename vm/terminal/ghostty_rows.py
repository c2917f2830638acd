"""Reads the engine's changed rows as text, runs and links, and its cursor."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from vm.terminal.cell_text import STYLE_SHIFT, masks, plain_text
from vm.terminal.ghostty_links import LinkReader
from vm.terminal.ghostty_styles import Styles
from vm.terminal.mixed_row import mixed_row
from vm.terminal.screen import Cursor, CursorShape, Row, Run

if TYPE_CHECKING:
    from vm.terminal.ghostty import Ghostty
    from vm.terminal.ghostty_terminal import Terminal

DIRTY_FULL = 2
"""GHOSTTY_RENDER_STATE_DIRTY_FULL: any row may have changed."""

MAX_CLUSTER = 256
"""Bytes of one cluster that are looked at."""


class RowReader:
    """The render state of one terminal."""

    def __init__(self, ghostty: Ghostty, terminal: Terminal) -> None:
        self.ghostty, self.terminal = ghostty, terminal
        self.ffi, self.lib = ghostty.ffi, ghostty.lib
        new = self.ffi.new
        self.state = ghostty.make("GhosttyRenderState", "ghostty_render_state_new")
        self._rows = new("GhosttyRenderStateRowIterator*")
        ghostty.check(
            self.lib.ghostty_render_state_row_iterator_new(self.ffi.NULL, self._rows), "rows"
        )
        self.cells = new("GhosttyRenderStateRowCells*")
        ghostty.check(
            self.lib.ghostty_render_state_row_cells_new(self.ffi.NULL, self.cells), "cells"
        )
        self._view = new("GhosttyCellsView*")
        self._y = new("uint16_t*")
        self._dirty = new("int*")
        self._cursor = ghostty.sized("GhosttyRenderStateCursor")
        self._cluster = new("uint8_t[]", MAX_CLUSTER)
        self._cluster_out = new("GhosttyBuffer*")
        self.styles = Styles(ghostty, self.state)
        self._links = LinkReader(terminal)
        self._all_again = False

    def close(self) -> None:
        """Free the engine's objects."""
        self.lib.ghostty_render_state_row_cells_free(self.cells[0])
        self.lib.ghostty_render_state_row_iterator_free(self._rows[0])
        self.lib.ghostty_render_state_free(self.state)

    def redraw(self) -> None:
        """Return all rows next time."""
        self._all_again = True

    def changed(self, *, full: bool) -> dict[int, Row]:
        """Return the rows that the engine marked since last time, or all rows."""
        lib = self.lib
        lib.ghostty_render_state_update(self.state, self.terminal.handle)
        lib.ghostty_render_state_get(self.state, lib.GHOSTTY_RENDER_STATE_DATA_DIRTY, self._dirty)
        full = self.styles.changed() or full or self._all_again or self._dirty[0] == DIRTY_FULL
        self._all_again = False
        if not full and not self._dirty[0]:
            return {}
        lib.ghostty_render_state_get(
            self.state, lib.GHOSTTY_RENDER_STATE_DATA_ROW_ITERATOR, self._rows
        )
        self._links.begin()
        rows = self._all() if full else self._marked()
        lib.ghostty_render_state_clean(self.state)
        return rows

    def _all(self) -> dict[int, Row]:
        found: dict[int, Row] = {}
        step, rows = self.lib.ghostty_render_state_row_iterator_next, self._rows[0]
        while step(rows):
            found[len(found)] = self._row(rows, len(found))
        return found

    def _marked(self) -> dict[int, Row]:
        found: dict[int, Row] = {}
        step, rows, y = (
            self.lib.ghostty_render_state_row_iterator_next_dirty,
            self._rows[0],
            self._y,
        )
        while step(rows, y):
            found[int(y[0])] = self._row(rows, int(y[0]))
        return found

    def cursor(self) -> Cursor | None:
        """Return the cursor as of the last `changed`, or None when it is not to be seen."""
        it = self._cursor
        self.lib.ghostty_render_state_get(self.state, self.lib.GHOSTTY_RENDER_STATE_DATA_CURSOR, it)
        if not (it.visible and it.viewport_has_value):
            return None
        x = int(it.viewport_x) - (1 if it.wide_tail and it.viewport_x else 0)
        shape = CursorShape(int(it.visual_style) if 0 <= it.visual_style <= 3 else 1)
        return Cursor(x, int(it.viewport_y), shape, bool(it.blinking), bool(it.wide_tail))

    # -- one row -----------------------------------------------------------------------------

    def _row(self, rows: Any, y: int) -> Row:
        view = self._view
        self.lib.ghostty_render_state_row_get(
            rows, self.lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS_RAW, view
        )
        width = int(view.len)
        raw = bytes(self.ffi.buffer(view.ptr, width * 8))
        number = int.from_bytes(raw, "little")
        text = plain_text(number, width)
        if text is None:
            row = mixed_row(raw, StylePicker(self, rows))
        else:
            row = Row(text, self._plain_runs(number & masks(width).style, width, rows))
        if number & masks(width).link:
            return row._replace(links=self._links.row(y, number, width))
        return row

    def _plain_runs(self, styles: int, width: int, rows: Any) -> tuple[Run, ...]:
        """Return the runs of a row in which each cell holds one narrow character."""
        if not styles:
            return (Run(self.styles.colors.plain(), width, width),)
        ids = memoryview((styles >> STYLE_SHIFT).to_bytes(width * 8, "little")).cast("Q").tolist()
        pick = StylePicker(self, rows)
        cuts = [x for x, (a, b) in enumerate(itertools.pairwise(ids), 1) if a != b]
        starts = [0, *cuts]
        return tuple(
            Run(pick(ids[start], start), end - start, end - start)
            for start, end in zip(starts, [*cuts, width], strict=True)
        )

    def read_cluster(self, x: int) -> str:
        """Return the characters of cell `x` of the row that was selected."""
        cells, out = self.cells[0], self._cluster_out
        self.lib.ghostty_render_state_row_cells_select(cells, x)
        out.ptr, out.cap, out.len = self._cluster, MAX_CLUSTER, 0
        done = self.lib.ghostty_render_state_row_cells_get(
            cells, self.lib.GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_GRAPHEMES_UTF8, out
        )
        if done != 0 or not out.len:
            return "\ufffd"
        return bytes(self.ffi.buffer(self._cluster, out.len)).decode("utf-8", "replace")

    def select_row(self, rows: Any) -> None:
        """Make `cells` and `read_cluster` speak of the iterator's row."""
        self.lib.ghostty_render_state_row_get(
            rows, self.lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS, self.cells
        )


class StylePicker:
    """Styles of one row: the engine's style ids mean something within a row only."""

    def __init__(self, reader: RowReader, rows: Any) -> None:
        self.reader, self.rows = reader, rows
        self.known: dict[int, bytes] = {0: reader.styles.colors.plain()}
        self.selected = False

    def __call__(self, style: int, x: int) -> bytes:
        """Return the packed style with id `style`, which cell `x` has."""
        found = self.known.get(style)
        if found is None:
            self._select()
            found = self.known[style] = self.reader.styles.read(self.reader.cells[0], x)
        return found

    def cluster(self, x: int) -> str:
        """Return the cluster of cell `x`."""
        self._select()
        return self.reader.read_cluster(x)

    def _select(self) -> None:
        if not self.selected:
            self.reader.select_row(self.rows)
            self.selected = True
