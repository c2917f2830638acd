"""libghostty-vt as a `VTEngine`: the settings that keep it safe, and the order of things."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm.terminal import soft_reset
from vm.terminal.cluster_guard import ClusterGuard
from vm.terminal.ghostty import EngineFailed
from vm.terminal.ghostty_clone import CONTINUATION_BYTES, decoded
from vm.terminal.ghostty_page import GhosttyPage
from vm.terminal.ghostty_terminal import Terminal
from vm.terminal.keys import Encoder
from vm.terminal.palette import TerminalPalette
from vm.terminal.paste import PASTE_MODE, Paste
from vm.terminal.pieces import Pieces, fixed_width
from vm.terminal.screen import Happenings, clamp_size

if TYPE_CHECKING:
    from vm.terminal.ghostty import Ghostty
    from vm.terminal.screen import MouseEvent

SCROLLBACK_BYTES = 12_000_000
"""Keeps 10,000 rows of a coloured log of 120 columns (10 MB; 10 MB would keep 9,200 of them), and a
colour for each word in 11 MB. A limit in lines instead makes scrolling ten times slower."""

MAX_REPLY = 65_536
"""Answers kept for the guest in bytes; a guest that asks more without reading loses answers."""

MAX_TITLE = 1024
MAX_NOTIFICATION = 4096
MAX_CLIPBOARD = 1 << 20
"""Longest texts in bytes that a guest may hand over."""

CLUSTER_MODE = 2027
LINK = b"]8;"
"""What every link begins with (OSC 8)."""


class GhosttyEngine(GhosttyPage):
    """One terminal on libghostty. See `vm.terminal.engine.VTEngine` for the methods."""

    def __init__(
        self, ghostty: Ghostty, columns: int, rows: int, palette: TerminalPalette | None = None
    ) -> None:
        size = clamp_size(columns, rows)
        super().__init__(ghostty, Terminal.new(ghostty, *size), size)
        self._replies = bytearray()
        self._happened = Happenings()
        self._held = False
        self._pieces = Pieces()
        self._soft_resets = soft_reset.Finder()
        self._last = b""
        self._has_links = False
        self._guard = ClusterGuard(self._terminal, self._ask)
        self._terminal.listen(self)
        self._settle()
        self._encoder = Encoder(ghostty, self._terminal)
        self._paste = Paste()
        self.set_palette(palette or TerminalPalette())

    def _settle(self) -> None:
        """Set what must hold before the first byte of a guest."""
        it = self._terminal
        it.set_size_option("SCROLLBACK_MAX_LINES", None)
        it.set_size_option("SCROLLBACK_MAX_BYTES", SCROLLBACK_BYTES)
        it.set_image_limit(0)
        it.set_flag("TITLE_REPORT", False)
        it.set_size_option("CONTINUATION_MAX_BYTES", CONTINUATION_BYTES)
        it.set_size_option("CLIPBOARD_WRITE_MAX_BYTES", MAX_CLIPBOARD)
        it.set_mode_default(CLUSTER_MODE, True)

    def _ask(self, query: bytes) -> bytes:
        """Return what the engine answers to a query of our own."""
        kept, self._replies = self._replies, bytearray()
        self._terminal.write(query)
        told, self._replies = bytes(self._replies), kept
        return told

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
        palette = self._palette or TerminalPalette()
        return sum(palette.background) < sum(palette.foreground)

    # -- VTEngine ----------------------------------------------------------------------------

    @property
    def held(self) -> bool:
        """True while the guest holds drawing back."""
        return self._held

    def feed(self, data: bytes) -> None:
        """Take output of the guest."""
        # padding that every terminal passes over; the engine would print it
        data = fixed_width(self._pieces.whole(data.replace(b"\x7f", b"")))
        self._encoder.watch(data)
        self._look_for_links(data)
        at = 0
        for end in self._soft_resets.ends(data):
            self._guard.write(data[at:end])
            self._terminal.write(soft_reset.after(*self._terminal.cursor()))
            at = end
        self._guard.write(data[at:] if at else data)
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

    def resize(self, columns: int, rows: int) -> None:
        """Take another size."""
        wanted = clamp_size(columns, rows)
        if wanted != self._wanted:
            if self._has_links and wanted[0] > self._wanted[0]:
                self._move_over()
            self.resize_page(wanted)

    def _look_for_links(self, data: bytes) -> None:
        if not self._has_links:
            self._has_links = LINK in self._last + data
            self._last = (self._last + data)[1 - len(LINK) :]

    def _move_over(self) -> None:
        """Go on in a copy of the terminal.

        The engine may end (Screen.cursorReload) when it widens rows with links whose pages have
        grown one by one; in a copy, which is laid out at once, it has not been seen to.
        """
        try:
            copy = decoded(self._terminal.ghostty, self._terminal.snapshot())
        except EngineFailed:
            return  # with half a wide character in a row the engine makes none
        total, offset, length = self._terminal.scrollbar()
        self._terminal.become(copy)
        self._terminal.listen(self)
        self._settle()
        self.renew_page()
        if offset + length < total:
            self._terminal.scroll_to(offset)

    def set_palette(self, palette: TerminalPalette) -> None:
        """Tell guests other default colours."""
        self.set_colors(palette)

    def encode_key(self, key: str, character: str | None) -> bytes:
        """Return what a key sends."""
        return self._encoder.key(key, character)

    def encode_paste(self, text: str, *, begin: bool = True, end: bool = True) -> bytes:
        """Return what a paste sends."""
        bracketed = self._terminal.mode(PASTE_MODE)
        return self._paste.piece(text, begin=begin, end=end, bracketed=bracketed)

    def encode_mouse(self, event: MouseEvent) -> bytes:
        """Return what a mouse event sends."""
        return self._encoder.mouse(event, self._wanted)

    def encode_wheel(self, event: MouseEvent) -> bytes | None:
        """Return what the wheel sends, or None when it should move the page."""
        return self._encoder.wheel(event, self._wanted, self.modes())

    def encode_focus(self, focused: bool) -> bytes:
        """Return the focus report, if the guest wants one."""
        return self._encoder.focus(focused)

    def snapshot(self) -> bytes | None:
        """Return the engine's serialised state, None when it refuses.

        It does inside an unfinished sequence that is longer than `CONTINUATION_BYTES`.
        """
        try:
            return self._terminal.snapshot()
        except EngineFailed:
            return None

    def close(self) -> None:
        """Free the engine."""
        self._encoder.close()
        super().close()


def _text(data: bytes, limit: int) -> str:
    return data[:limit].decode("utf-8", "replace")
