"""What a terminal engine must do, so that another one can take libghostty's place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from vm.terminal.palette import TerminalPalette
    from vm.terminal.screen import Frame, Happenings, MouseEvent, Scrollback


class VTEngine(Protocol):
    """One emulated terminal: bytes in, frames and answers out. Not thread safe.

    Nothing that a guest sends raises; an engine in native code can still end its process, which is
    why engines live in the pane worker.
    """

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        ...

    @property
    def held(self) -> bool:
        """True while the guest holds drawing back (synchronised output, mode 2026)."""
        ...

    def feed(self, data: bytes) -> None:
        """Take output of the guest: any bytes, cut anywhere."""
        ...

    def take_replies(self) -> bytes:
        """Return what the engine answered to the guest's queries since last time."""
        ...

    def take_happenings(self) -> Happenings:
        """Return what the guest asked for besides drawing since last time."""
        ...

    def frame(self, *, full: bool = False) -> Frame:
        """Return what changed since the last frame, or the whole page."""
        ...

    def resize(self, columns: int, rows: int) -> None:
        """Take another size (clamped), reflowing the primary screen."""
        ...

    def scrollback(self) -> Scrollback:
        """Return how many rows there are and where the page lies."""
        ...

    def scroll(self, lines: int) -> None:
        """Move the page through the scrollback by `lines`, negative up."""
        ...

    def scroll_to_end(self) -> None:
        """Show the newest output again."""
        ...

    def set_palette(self, palette: TerminalPalette) -> None:
        """Tell guests other default colours."""
        ...

    def encode_key(self, key: str, character: str | None) -> bytes:
        """Return what a key sends in the guest's modes; `key` as Textual names it."""
        ...

    def encode_paste(self, text: str) -> bytes:
        """Return what pasting sends: no control characters, paste marks if the guest asked."""
        ...

    def encode_mouse(self, event: MouseEvent) -> bytes:
        """Return what a mouse event sends: nothing unless the guest tracks the mouse."""
        ...

    def encode_wheel(self, event: MouseEvent) -> bytes | None:
        """Return what turning the wheel sends, or None when it should move the page."""
        ...

    def encode_focus(self, focused: bool) -> bytes:
        """Return what gaining or losing the focus sends: nothing unless the guest asked."""
        ...

    def text(self, *, scrollback: bool = False) -> str:
        """Return the active screen (with all of its scrollback) as plain text."""
        ...

    def selection_text(
        self, start: tuple[int, int], end: tuple[int, int], *, rectangle: bool = False
    ) -> str:
        """Return the text between two cells of the visible page, soft wraps joined."""
        ...

    def snapshot(self) -> bytes | None:
        """Return the engine's serialised state for its own later use; None when it cannot now."""
        ...

    def close(self) -> None:
        """Free the engine; nothing may be called afterwards."""
        ...
