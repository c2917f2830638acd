"""What is shown of one terminal: its page, or a frozen copy of it, with selection and search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm.terminal.ghostty import EngineFailed
from vm.terminal.ghostty_copy import CopyMode
from vm.terminal.ghostty_grid import Grid
from vm.terminal.ghostty_rows import RowReader
from vm.terminal.ghostty_select import LiveSelection
from vm.terminal.palette import all_colors
from vm.terminal.screen import Frame, Mode, Scrollback, ViewState

if TYPE_CHECKING:
    from vm.terminal.ghostty import Ghostty
    from vm.terminal.ghostty_terminal import Terminal
    from vm.terminal.palette import TerminalPalette
    from vm.terminal.screen import Motion, Row, Shape, Unit

MODES = (
    (9, Mode.MOUSE_CLICK),
    (1000, Mode.MOUSE_CLICK),
    (1002, Mode.MOUSE_DRAG),
    (1003, Mode.MOUSE_ANY),
    (2004, Mode.BRACKETED_PASTE),
    (1004, Mode.FOCUS_EVENTS),
    (1007, Mode.ALTERNATE_SCROLL),
)


class GhosttyPage:
    """The viewing half of `vm.terminal.engine.VTEngine`; see there for the methods."""

    def __init__(self, ghostty: Ghostty, terminal: Terminal, size: tuple[int, int]) -> None:
        self._ghostty, self._terminal = ghostty, terminal
        self._wanted = size
        self._grid = Grid(terminal)
        self._reader = RowReader(ghostty, terminal)
        self._selection = LiveSelection(terminal)
        self._copy: CopyMode | None = None
        self._shown: dict[int, Row] = {}
        self._palette: TerminalPalette | None = None

    def close(self) -> None:
        """Free the engine's objects."""
        self.copy_mode(False)
        self._selection.clear()
        self._reader.close()
        self._terminal.close()

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return self._wanted

    # -- frames ------------------------------------------------------------------------------

    def frame(self, *, full: bool = False) -> Frame:
        """Return what changed since the last frame."""
        if full:
            self._shown.clear()
        copy = self._copy
        if copy is None:
            rows, cursor = self._reader.changed(full=full), self._reader.cursor()
            self._selection.check()
            marks = self._selection.marks()
        else:
            rows, cursor, marks = copy.rows(full=full), copy.cursor(), copy.marks()
        shown = self._shown
        changed = {y: row for y, row in rows.items() if shown.get(y) != row}
        shown.update(changed)
        modes, scrollback = self.modes(), self.scrollback()
        return Frame(*self._wanted, changed, cursor, modes, scrollback, marks, self.view)

    def modes(self) -> Mode:
        """Return what the guest switched on."""
        found = Mode.ALTERNATE if self._terminal.alternate() else Mode(0)
        for number, mode in MODES:
            if self._terminal.mode(number):
                found |= mode
        return found

    @property
    def view(self) -> ViewState:
        """What the user does with the page."""
        if self._copy is not None:
            return self._copy.state
        return ViewState(selected=bool(self._selection))

    def set_colors(self, palette: TerminalPalette) -> None:
        """Show other default colours; a frozen page keeps its own, relative to which it is told."""
        self._palette = palette
        self._color(self._terminal, self._reader)

    def _color(self, terminal: Terminal, reader: RowReader) -> None:
        if self._palette is not None:
            it, colors = self._palette, all_colors(self._palette)
            terminal.set_colors(it, colors)
            reader.styles.set_defaults(it.foreground, it.background, colors)

    # -- size and place ----------------------------------------------------------------------

    def renew_page(self) -> None:
        """Read the terminal anew: it is another one of the library's."""
        self._selection.clear()
        self._reader.close()
        self._reader = RowReader(self._ghostty, self._terminal)
        self._color(self._terminal, self._reader)
        self._shown.clear()

    def resize_page(self, size: tuple[int, int]) -> None:
        """Take another size."""
        self._wanted = size
        self._shown.clear()
        self._selection.check()
        self._terminal.resize(*size)
        self._selection.resized()
        if self._copy is not None:
            self._copy.resize(*size)

    def scrollback(self) -> Scrollback:
        """Return where the page lies."""
        if self._copy is not None:
            return self._copy.scrollback()
        total, offset, length = self._terminal.scrollbar()
        return Scrollback(total, offset, offset + length >= total)

    def scroll(self, lines: int) -> None:
        """Move the page, negative up."""
        (self._copy or self._terminal).scroll(lines)

    def scroll_to_end(self) -> None:
        """Show the newest output."""
        if self._copy is not None:
            self._copy.scroll_to_end()
        else:
            self._terminal.scroll(None)

    # -- text --------------------------------------------------------------------------------

    def text(self, *, scrollback: bool = False) -> str:
        """Return the active screen as text, row by row, or everything with soft wraps joined."""
        if scrollback:
            everything = self._grid.everything()
            return self._grid.text(everything, unwrap=True) if everything is not None else ""
        last = (self._wanted[0] - 1, self._wanted[1] - 1)
        chosen = self._grid.selection("ACTIVE", (0, 0), last, block=False)
        return self._grid.text(chosen, unwrap=False)

    def selected_text(self) -> str:
        """Return the selection's text."""
        return self._selection.text() if self._copy is None else self._copy.selected_text()

    # -- selection ---------------------------------------------------------------------------

    def select(self, x: int, y: int, unit: Unit, *, block: bool = False) -> None:
        """Begin a selection."""
        if self._copy is None:
            self._selection.start(x, y, unit, block=block)
        else:
            self._copy.select(x, y, unit, block=block)

    def select_to(self, x: int, y: int) -> None:
        """Move the selection's end."""
        if self._copy is None:
            self._selection.extend(x, y)
        else:
            self._copy.select_to(x, y)

    def select_none(self) -> None:
        """End the selection."""
        self._selection.clear()
        if self._copy is not None:
            self._copy.select_none()

    # -- copy mode ---------------------------------------------------------------------------

    def copy_mode(self, on: bool) -> None:
        """Freeze the page, or show what the guest shows again."""
        if on and self._copy is None:
            self._freeze()
        elif not on and self._copy is not None:
            self._copy.close()
            self._copy = None
            self._reader.redraw()

    def _freeze(self) -> None:
        self._selection.clear()
        try:
            self._copy = CopyMode(self._ghostty, self._terminal)
        except EngineFailed:
            return  # the engine has no memory for a copy: the page stays live, and says so
        self._color(self._copy.terminal, self._copy.reader)

    def copy_move(self, motion: Motion, count: int | None = None) -> None:
        """Move the copy cursor."""
        if self._copy is not None:
            self._copy.move(motion, count)

    def copy_mark(self, shape: Shape) -> None:
        """Change the selection at the copy cursor."""
        if self._copy is not None:
            self._copy.mark(shape)

    def search(self, text: str, *, backwards: bool = False) -> None:
        """Search the page and its scrollback."""
        if text:
            self.copy_mode(True)
        if self._copy is not None:
            self._copy.search(text, backwards=backwards)

    def find(self, *, backwards: bool = False) -> None:
        """Go to the next match."""
        if self._copy is not None:
            self._copy.find(backwards=backwards)

    def work(self, seconds: float) -> bool:
        """Go on with a search."""
        return self._copy is not None and self._copy.work(seconds)
