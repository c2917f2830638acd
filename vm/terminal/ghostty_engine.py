"""libghostty-vt as a `VTEngine`: the settings that keep it safe, and the order of things."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm.terminal import soft_reset
from vm.terminal.ghostty import EngineFailed
from vm.terminal.ghostty_rows import RowReader
from vm.terminal.ghostty_terminal import Terminal
from vm.terminal.keys import Encoder
from vm.terminal.palette import TerminalPalette
from vm.terminal.screen import (
    Frame,
    Happenings,
    Mode,
    Row,
    Scrollback,
    ViewState,
    clamp_size,
)

if TYPE_CHECKING:
    from vm.terminal.ghostty import Ghostty
    from vm.terminal.palette import RGB
    from vm.terminal.screen import Motion, MouseEvent, Shape, Unit

SCROLLBACK_BYTES = 10_000_000
"""About 9,000 rows of 120 columns. A limit in lines instead makes scrolling ten times slower."""

MAX_REPLY = 65_536
"""Answers kept for the guest in bytes; a guest that asks more without reading loses answers."""

MAX_TITLE = 1024
MAX_NOTIFICATION = 4096
MAX_CLIPBOARD = 1 << 20
"""Longest texts in bytes that a guest may hand over."""

CLUSTER_MODE = 2027
MODES = (
    (9, Mode.MOUSE_CLICK),
    (1000, Mode.MOUSE_CLICK),
    (1002, Mode.MOUSE_DRAG),
    (1003, Mode.MOUSE_ANY),
    (2004, Mode.BRACKETED_PASTE),
    (1004, Mode.FOCUS_EVENTS),
    (1007, Mode.ALTERNATE_SCROLL),
)


class GhosttyEngine:
    """One terminal on libghostty. See `vm.terminal.engine.VTEngine` for the methods."""

    def __init__(
        self, ghostty: Ghostty, columns: int, rows: int, palette: TerminalPalette | None = None
    ) -> None:
        self._wanted = clamp_size(columns, rows)
        self._palette = palette or TerminalPalette()
        self._replies = bytearray()
        self._happened = Happenings()
        self._held = False
        self._soft_resets = soft_reset.Finder()
        self._shown: dict[int, Row] = {}
        self._terminal = Terminal(ghostty, self, *self._wanted)
        self._settle()
        self._reader = RowReader(ghostty, self._terminal)
        self._encoder = Encoder(ghostty, self._terminal)
        self.set_palette(self._palette)

    def _settle(self) -> None:
        """Set what must hold before the first byte of a guest."""
        it = self._terminal
        it.set_size_option("SCROLLBACK_MAX_LINES", None)
        it.set_size_option("SCROLLBACK_MAX_BYTES", SCROLLBACK_BYTES)
        it.set_image_limit(0)
        it.set_flag("TITLE_REPORT", False)
        it.set_size_option("CLIPBOARD_WRITE_MAX_BYTES", MAX_CLIPBOARD)
        it.set_mode_default(CLUSTER_MODE, True)

    # -- what the engine calls back ----------------------------------------------------------

    def on_reply(self, data: bytes) -> None:
        """Keep an answer for the guest."""
        if len(self._replies) + len(data) <= MAX_REPLY:
            self._replies += data

    def on_bell(self) -> None:
        """Note the bell."""
        self._happened.bell = True

    def on_title(self) -> None:
        """Note the title."""
        self._happened.title = _text(self._terminal.title(), MAX_TITLE)

    def on_folder(self) -> None:
        """Note the folder."""
        self._happened.folder = _text(self._terminal.folder(), MAX_TITLE)

    def on_hold(self, held: bool) -> None:
        """Note a synchronised update."""
        self._held = held

    def on_clipboard(self, data: bytes) -> None:
        """Note a wish to write the clipboard."""
        self._happened.clipboard = _text(data, MAX_CLIPBOARD)

    def on_notification(self, title: bytes, body: bytes) -> None:
        """Note a notification."""
        self._happened.notification = (_text(title, MAX_TITLE), _text(body, MAX_NOTIFICATION))

    def on_progress(self, state: int, value: int) -> None:
        """Note progress: the engine's state number and per cent (-1: none)."""
        self._happened.progress = (state, value)

    def cells(self) -> tuple[int, int]:
        """Return columns and rows."""
        return self._wanted

    def dark(self) -> bool:
        """Return whether the background is darker than the foreground."""
        return sum(self._palette.background) < sum(self._palette.foreground)

    # -- VTEngine ----------------------------------------------------------------------------

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return self._wanted

    @property
    def held(self) -> bool:
        """True while the guest holds drawing back."""
        return self._held

    def feed(self, data: bytes) -> None:
        """Take output of the guest."""
        # padding that every terminal passes over; the engine would print it
        data = data.replace(b"\x7f", b"")
        self._encoder.watch(data)
        at = 0
        for end in self._soft_resets.ends(data):
            self._terminal.write(data[at:end])
            self._terminal.write(soft_reset.after(*self._terminal.cursor()))
            at = end
        self._terminal.write(data[at:] if at else data)
        if self._terminal.size() != self._wanted:
            # a guest may ask for 132 columns (modes 40 and 3); its size is not its own to choose
            self._terminal.resize(*self._wanted)

    def take_replies(self) -> bytes:
        """Return the answers since last time."""
        taken = bytes(self._replies)
        self._replies.clear()
        return taken

    def take_happenings(self) -> Happenings:
        """Return what happened since last time."""
        taken, self._happened = self._happened, Happenings()
        return taken

    def frame(self, *, full: bool = False) -> Frame:
        """Return what changed since the last frame."""
        if full:
            self._shown.clear()
        rows = self._reader.changed(full=full)
        shown = self._shown
        changed = {y: row for y, row in rows.items() if shown.get(y) != row}
        shown.update(changed)
        return Frame(
            *self._wanted,
            changed,
            self._reader.cursor(),
            self.modes(),
            self.scrollback(),
        )

    def modes(self) -> Mode:
        """Return what the guest switched on."""
        found = Mode.ALTERNATE if self._terminal.alternate() else Mode(0)
        for number, mode in MODES:
            if self._terminal.mode(number):
                found |= mode
        return found

    def scrollback(self) -> Scrollback:
        """Return where the page lies."""
        total, offset, length = self._terminal.scrollbar()
        return Scrollback(total, offset, offset + length >= total)

    def resize(self, columns: int, rows: int) -> None:
        """Take another size."""
        wanted = clamp_size(columns, rows)
        if wanted != self._wanted:
            self._wanted = wanted
            self._shown.clear()
            self._terminal.resize(*wanted)

    def scroll(self, lines: int) -> None:
        """Move the page, negative up."""
        self._terminal.scroll(lines)

    def scroll_to_end(self) -> None:
        """Show the newest output."""
        self._terminal.scroll(None)

    def set_palette(self, palette: TerminalPalette) -> None:
        """Tell guests other default colours."""
        self._palette = palette
        self._terminal.set_colors(palette, all_colors(palette))
        self._reader.set_defaults(palette.foreground, palette.background, all_colors(palette))

    def encode_key(self, key: str, character: str | None) -> bytes:
        """Return what a key sends."""
        return self._encoder.key(key, character)

    def encode_paste(self, text: str, *, begin: bool = True, end: bool = True) -> bytes:
        """Return what a paste sends."""
        return self._encoder.paste(text)

    def encode_mouse(self, event: MouseEvent) -> bytes:
        """Return what a mouse event sends."""
        return self._encoder.mouse(event, self._wanted)

    def encode_wheel(self, event: MouseEvent) -> bytes | None:
        """Return what the wheel sends, or None when it should move the page."""
        return self._encoder.wheel(event, self._wanted, self.modes())

    def encode_focus(self, focused: bool) -> bytes:
        """Return the focus report, if the guest wants one."""
        return self._encoder.focus(focused)

    def text(self, *, scrollback: bool = False) -> str:
        """Return the active screen, or all rows, as plain text."""
        it = self._terminal
        if scrollback:
            everything = it.everything()
            return it.plain_text(everything, unwrap=True) if everything is not None else ""
        last = (self._wanted[0] - 1, self._wanted[1] - 1)
        chosen = it.selection("ACTIVE", (0, 0), last, rectangle=False)
        return it.plain_text(chosen, unwrap=False)

    def selection_text(
        self, start: tuple[int, int], end: tuple[int, int], *, rectangle: bool = False
    ) -> str:
        """Return the text between two cells of the visible page."""
        first, last = (self._inside(cell) for cell in (start, end))
        chosen = self._terminal.selection("VIEWPORT", first, last, rectangle=rectangle)
        return self._terminal.plain_text(chosen, unwrap=True)

    @property
    def view(self) -> ViewState:
        """What the user does with the page."""
        return ViewState()

    def select(self, x: int, y: int, unit: Unit, *, block: bool = False) -> None:
        """Begin a selection."""
        raise NotImplementedError

    def select_to(self, x: int, y: int) -> None:
        """Move the selection's end."""
        raise NotImplementedError

    def select_none(self) -> None:
        """End the selection."""

    def selected_text(self) -> str:
        """Return the selection's text."""
        raise NotImplementedError

    def copy_mode(self, on: bool) -> None:
        """Freeze the page."""

    def copy_move(self, motion: Motion, count: int | None = None) -> None:
        """Move the copy cursor."""
        raise NotImplementedError

    def copy_mark(self, shape: Shape) -> None:
        """Change the selection at the copy cursor."""
        raise NotImplementedError

    def search(self, text: str, *, backwards: bool = False) -> None:
        """Search the page and its scrollback."""
        raise NotImplementedError

    def find(self, *, backwards: bool = False) -> None:
        """Go to the next match."""
        raise NotImplementedError

    def work(self, seconds: float) -> bool:
        """Go on with a search."""
        return False

    def _inside(self, cell: tuple[int, int]) -> tuple[int, int]:
        columns, rows = self._wanted
        return max(0, min(cell[0], columns - 1)), max(0, min(cell[1], rows - 1))

    def snapshot(self) -> bytes | None:
        """Return the engine's serialised state, None when it refuses.

        It does inside an unfinished sequence, and on grids with half a wide character.
        """
        try:
            return self._terminal.snapshot()
        except EngineFailed:
            return None

    def close(self) -> None:
        """Free the engine."""
        self._encoder.close()
        self._reader.close()
        self._terminal.close()


def all_colors(palette: TerminalPalette) -> tuple[RGB, ...]:
    """Return 256 colours: the palette's sixteen, xterm's cube of 6x6x6, its 24 greys."""
    levels = (0, 95, 135, 175, 215, 255)
    cube = tuple((r, g, b) for r in levels for g in levels for b in levels)
    greys = tuple((v, v, v) for v in range(8, 248, 10))
    return palette.ansi + cube + greys


def _text(data: bytes, limit: int) -> str:
    return data[:limit].decode("utf-8", "replace")
