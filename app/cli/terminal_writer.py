"""A guest's output on the user's own terminal: harmless, and with its traces taken back."""

from __future__ import annotations

from app.cli.attach import ALTERNATE, MAIN_SCREEN, RESET
from app.cli.filter import COLORS_BACK, OutputFilter
from app.client.programs import write_all


class TerminalWriter:
    """Writes to a terminal what may be written there."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._filter = OutputFilter()
        self._alternate = False
        self._sequences = False

    async def write(self, data: bytes) -> None:
        """Write the next piece; the filter lets no piece end within a sequence."""
        passed = self._filter.feed(data)
        for switch in ALTERNATE.finditer(passed):
            self._alternate = switch[1] == b"h"
        self._sequences = self._sequences or b"\x1b" in passed
        await write_all(self._descriptor, passed)

    @property
    def leave(self) -> bytes:
        """What brings back the main screen, where the program left another, and the colours."""
        screen = MAIN_SCREEN if self._alternate else b""
        return screen + (COLORS_BACK if self._filter.colored else b"")

    @property
    def undo(self) -> bytes:
        """What takes back all that the program may have switched on; nothing for plain text."""
        return self.leave + RESET if self._sequences else b""
