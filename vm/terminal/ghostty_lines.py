"""The rows of a terminal that does not change, as text to move over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm.terminal.cell_text import cell_texts, plain_text
from vm.terminal.copy_text import Line

if TYPE_CHECKING:
    from vm.terminal.ghostty import Ghostty
    from vm.terminal.ghostty_terminal import Terminal

MAX_LINES = 20_000
"""Rows kept; more than the scrollback of a usual terminal holds (3 MB)."""


class LineReader:
    """Reads rows page by page and keeps them (see `copy_text.Text`).

    It moves the visible page of the terminal: whoever draws puts it back first.
    """

    def __init__(self, ghostty: Ghostty, terminal: Terminal) -> None:
        self._terminal = terminal
        self._ffi, self._lib = ghostty.ffi, ghostty.lib
        self._state = ghostty.make("GhosttyRenderState", "ghostty_render_state_new")
        self._rows = self._ffi.new("GhosttyRenderStateRowIterator*")
        made = self._lib.ghostty_render_state_row_iterator_new(self._ffi.NULL, self._rows)
        ghostty.check(made, "rows")
        self._view = self._ffi.new("GhosttyCellsView*")
        self._row = self._ffi.new("GhosttyRow*")
        self._flag = self._ffi.new("bool*")
        self._prompt = self._ffi.new("GhosttyRowSemanticPrompt*")
        self._lines: dict[int, Line] = {}
        self.columns, self.height = 1, 1
        self.rows = 1
        self.last = 0
        self.forget()

    def close(self) -> None:
        """Free the engine's objects."""
        self._lib.ghostty_render_state_row_iterator_free(self._rows[0])
        self._lib.ghostty_render_state_free(self._state)

    def forget(self) -> None:
        """Read everything anew: the terminal has another size."""
        self._lines.clear()
        self.columns, self.height = self._terminal.size()
        self.rows = max(1, self._terminal.scrollbar()[0])
        self.last = self._last()

    def _last(self) -> int:
        """Return the last row that holds text, or the guest's cursor."""
        begin = max(0, self.rows - self.height)
        last = min(self.rows - 1, begin + self._terminal.cursor()[1])
        for y in range(self.rows - 1, last, -1):
            if self.line(y).length:
                return y
        return last

    def line(self, y: int) -> Line:
        """Return row `y`."""
        found = self._lines.get(y)
        if found is None:
            self._load(y)
            found = self._lines.get(y, Line(" " * self.columns))
        return found

    def _load(self, y: int) -> None:
        """Read the page around row `y`, more of it above: most moves go up."""
        if len(self._lines) > MAX_LINES:
            self._lines.clear()
        lib = self._lib
        top = max(0, min(y - self.height + 2, self.rows - self.height))
        self._terminal.scroll_to(top)
        lib.ghostty_render_state_update(self._state, self._terminal.handle)
        lib.ghostty_render_state_get(
            self._state, lib.GHOSTTY_RENDER_STATE_DATA_ROW_ITERATOR, self._rows
        )
        at = top
        while lib.ghostty_render_state_row_iterator_next(self._rows[0]):
            self._lines[at] = self._read()
            at += 1

    def _read(self) -> Line:
        lib, rows, view = self._lib, self._rows[0], self._view
        lib.ghostty_render_state_row_get(rows, lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS_RAW, view)
        width = int(view.len)
        raw = bytes(self._ffi.buffer(view.ptr, width * 8))
        text = plain_text(int.from_bytes(raw, "little"), width)
        lib.ghostty_render_state_row_get(rows, lib.GHOSTTY_RENDER_STATE_ROW_DATA_RAW, self._row)
        lib.ghostty_row_get(self._row[0], lib.GHOSTTY_ROW_DATA_WRAP, self._flag)
        lib.ghostty_row_get(self._row[0], lib.GHOSTTY_ROW_DATA_SEMANTIC_PROMPT, self._prompt)
        prompt = self._prompt[0] == lib.GHOSTTY_ROW_SEMANTIC_PROMPT
        return Line(cell_texts(raw) if text is None else text, bool(self._flag[0]), prompt)
