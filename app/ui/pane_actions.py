"""What the user does with a pane's page: selection, copy mode, search, text from it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.ui.pane_user import PaneUser
from vm.terminal import wire, wire_view
from vm.terminal.screen import Motion as EngineMotion
from vm.terminal.screen import Shape
from vm.terminal.screen import Unit as EngineUnit
from vm.terminal.wire import Copy, Down
from vm.terminal.wire_view import Select, Selecting

if TYPE_CHECKING:
    from widgets.terminal_feed import Motion, SelectionShape, Unit

COPY_S = 2.0
"""Seconds in which a worker must answer a question for text."""

CUT = "That is more than 1 MiB of text: the rest was not copied."


class PaneActions(PaneUser):
    """The part of `widgets.terminal_feed.PaneFeed` that asks something of the engine's page.

    Without a worker these do nothing: the page that they are about is gone with it.
    """

    def __init__(self, size: tuple[int, int], *, active: bool) -> None:
        super().__init__(size, active=active)
        self._copies: dict[int, asyncio.Future[str]] = {}
        self._copy_number = 0

    def select(self, x: int, y: int, unit: Unit, *, block: bool = False) -> None:
        """Begin a selection at a cell, or with the word or the line there."""
        self._select(Selecting(Select.START, x, y, EngineUnit[unit.upper()], block))

    def select_to(self, x: int, y: int) -> None:
        """Extend the selection; a row off the page moves the page."""
        self._select(Selecting(Select.EXTEND, x, y, EngineUnit.CELL, False))

    def select_none(self) -> None:
        """Take the selection away."""
        self._select(Selecting(Select.CLEAR, 0, 0, EngineUnit.CELL, False))

    def _select(self, it: Selecting) -> None:
        self._say(Down.SELECT, wire_view.pack_select(it))

    def copy_mode(self, on: bool) -> None:
        """Freeze the page under a cursor of the user's own, or let it go on."""
        self._say(Down.COPY_MODE, wire_view.BYTE.pack(on))

    def copy_move(self, motion: Motion, count: int | None = None) -> None:
        """Move the copy cursor; None is a motion without a count, which differs for some."""
        self._say(Down.MOVE, wire_view.pack_move(EngineMotion[motion.upper()], count))

    def copy_mark(self, shape: SelectionShape) -> None:
        """Begin a selection at the copy cursor, change its shape, or swap its ends."""
        self._say(Down.MARK, wire_view.BYTE.pack(Shape[shape.upper()]))

    def search(self, text: str, *, backwards: bool = False) -> None:
        """Find text; an empty one ends the search."""
        self._say(Down.SEARCH, wire_view.pack_search(text, backwards=backwards))

    def find_next(self, *, backwards: bool = False) -> None:
        """Go to the next match."""
        self._say(Down.FIND, wire_view.BYTE.pack(backwards))

    async def selected_text(self) -> str:
        """Return the selected text; TimeoutError after 2 s, ConnectionError without an engine."""
        return await self._text(Copy.SELECTION)

    async def text(self, *, scrollback: bool = False) -> str:
        """Return the visible page (or all rows) as plain text; TimeoutError after 2 s.

        Raises ConnectionError when there is no engine to ask.
        """
        return await self._text(Copy.ALL if scrollback else Copy.SCREEN)

    async def _text(self, what: Copy) -> str:
        if self._link is None:
            raise ConnectionError("the terminal's engine is not running")
        self._copy_number = (self._copy_number + 1) & 0xFFFFFFFF
        number = self._copy_number
        waiting = self._copies[number] = asyncio.get_running_loop().create_future()
        self._say(Down.COPY, wire.COPY.pack(number, what))
        try:
            return await asyncio.wait_for(waiting, COPY_S)
        finally:
            self._copies.pop(number, None)

    def _copied(self, payload: bytes) -> None:
        answer = wire_view.unpack_copied(payload)
        waiting = self._copies.pop(answer.request, None)
        if waiting is not None and not waiting.done():
            if answer.cut:
                self._refuse(CUT)
            waiting.set_result(answer.text)

    def _fail_copies(self) -> None:
        """Tell whoever waits for text that nobody answers any more."""
        for waiting in self._copies.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError("the terminal's engine ended"))
        self._copies.clear()
