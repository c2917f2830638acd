"""Links of a row (OSC 8): which cells lead where, for addresses that may be links at all."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from vm.terminal.cell_text import LINK_SHIFT, masks
from vm.terminal.ghostty_grid import Grid
from vm.terminal.screen import Link, link_address

if TYPE_CHECKING:
    from vm.terminal.ghostty_terminal import Terminal

CELLS_A_FRAME = 16_384
"""Cells whose address is asked for in one frame (about 15 ms); beyond that there are no links."""


class LinkReader:
    """Asks for the addresses of one terminal's visible page."""

    def __init__(self, terminal: Terminal) -> None:
        self._grid = Grid(terminal)
        self._left = CELLS_A_FRAME

    def begin(self) -> None:
        """Begin another frame."""
        self._left = CELLS_A_FRAME

    def row(self, y: int, number: int, width: int) -> tuple[Link, ...]:
        """Return the links of row `y`, whose packed cells are the bytes of `number`."""
        bits = number & masks(width).link
        cells = memoryview((bits >> LINK_SHIFT).to_bytes(width * 8, "little")).cast("Q").tolist()
        columns = [x for x, linked in enumerate(cells) if linked][: max(0, self._left)]
        self._left -= len(columns)
        found: list[Link] = []
        for x, data in zip(columns, self._grid.links(y, columns), strict=True):
            address = _address(data)
            if address is None:
                continue
            if found and found[-1].end == x and found[-1].uri == address:
                found[-1] = Link(found[-1].start, x + 1, address)
            else:
                found.append(Link(x, x + 1, address))
        return tuple(found)


@functools.lru_cache(256)
def _address(data: bytes) -> str | None:
    return link_address(data)
