"""What a terminal engine must do, so that another one can take libghostty's place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from vm.terminal.palette import TerminalPalette
    from vm.terminal.screen import (
        Frame,
        Happenings,
        Motion,
        MouseEvent,
        Scrollback,
        Shape,
        Unit,
        ViewState,
    )


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

    def encode_paste(self, text: str, *, begin: bool = True, end: bool = True) -> bytes:
        """Return what pasting sends: no control characters, paste marks if the guest asked.

        A long paste may come in pieces, of which the first one begins and the last one ends it:
        it gets one pair of marks.
        """
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

    @property
    def view(self) -> ViewState:
        """What the user does with the page."""
        ...

    def select(self, x: int, y: int, unit: Unit, *, block: bool = False) -> None:
        """Begin a selection at a cell of the visible page, in the place of any other one.

        By cells nothing is selected until `select_to`; by words and lines what lies there is.
        The selection stays on its text while that moves, and ends when the guest changes it.
        """
        ...

    def select_to(self, x: int, y: int) -> None:
        """Move the selection's end; above or below the page the page scrolls by one row first."""
        ...

    def select_none(self) -> None:
        """End the selection."""
        ...

    def selected_text(self) -> str:
        """Return the selection's text: soft wraps joined, no blanks at ends of lines."""
        ...

    def copy_mode(self, on: bool) -> None:
        """Freeze the page and move a copy cursor over it, or show what the guest shows again.

        Meanwhile the guest's output is parsed as ever. Leaving ends selection and search.
        """
        ...

    def copy_move(self, motion: Motion, count: int | None = None) -> None:
        """Move the copy cursor `count` times (None: the user gave no count); the page follows."""
        ...

    def copy_mark(self, shape: Shape) -> None:
        """Begin a selection at the copy cursor, change its shape, end it, or swap its ends."""
        ...

    def search(self, text: str, *, backwards: bool = False) -> None:
        """Search the page and its scrollback; an empty text ends the search.

        Upper case in the text makes it tell cases apart. The page goes to the first match from
        where it is. Outside copy mode this enters it.
        """
        ...

    def find(self, *, backwards: bool = False) -> None:
        """Go to the next match in the search's direction, or against it."""
        ...

    def work(self, seconds: float) -> bool:
        """Go on with what takes long (a search), about that long; True when there is more."""
        ...

    def snapshot(self) -> bytes | None:
        """Return the engine's serialised state for its own later use; None when it cannot now."""
        ...

    def close(self) -> None:
        """Free the engine; nothing may be called afterwards."""
        ...
