"""What the user does with a pane's page: selection, copy mode, search, taking the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from widgets.terminal_feed import Mark, Motion, SelectionShape, Unit, View


class PaneActions:
    """The part of `widgets.terminal_feed.PaneFeed` that asks something of the engine's page."""

    mirrored = False
    pasting = 0

    @property
    def view(self) -> View:
        """Copy mode, selection and search as of the last frame."""
        raise NotImplementedError

    def marks(self, y: int) -> tuple[Mark, ...]:
        """Return what is marked in row `y`."""
        raise NotImplementedError

    def link_at(self, x: int, y: int) -> str | None:
        """Return the link under a cell."""
        raise NotImplementedError

    def select(self, x: int, y: int, unit: Unit, *, block: bool = False) -> None:
        """Begin a selection."""
        raise NotImplementedError

    def select_to(self, x: int, y: int) -> None:
        """Extend the selection."""
        raise NotImplementedError

    def select_none(self) -> None:
        """Take the selection away."""
        raise NotImplementedError

    def copy_mode(self, on: bool) -> None:
        """Freeze the page or let it go on."""
        raise NotImplementedError

    def copy_move(self, motion: Motion, count: int = 1) -> None:
        """Move the copy cursor."""
        raise NotImplementedError

    def copy_mark(self, shape: SelectionShape) -> None:
        """Begin or change a selection at the copy cursor."""
        raise NotImplementedError

    def search(self, text: str, *, backwards: bool = False) -> None:
        """Find text."""
        raise NotImplementedError

    def find_next(self, *, backwards: bool = False) -> None:
        """Go to the next match."""
        raise NotImplementedError

    async def selected_text(self) -> str:
        """Return the selected text."""
        raise NotImplementedError

    def take_over(self) -> None:
        """Ask the keeper for the terminal."""
        raise NotImplementedError

    def cancel_paste(self) -> None:
        """Drop what waits of pastes."""
        raise NotImplementedError
