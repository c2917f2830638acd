"""What an installation says: its newest line while it runs, and why it failed when it has."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

from vm.text import printable

if TYPE_CHECKING:
    from vm.image.progress import Progress

KEPT_BYTES: Final = 64 << 10
"""Of all that it says, the end."""

TELL_S: Final = 0.5
"""Seconds between two looks at the newest line: installers print hundreds at a time."""

LOOKED_AT: Final = 4096
"""Bytes in which the newest line is looked for."""

SHOWN: Final = 200
"""Characters of a line that are shown."""

_TELLS: Final = re.compile(r"npm (?:ERR!|error) |(?:.{0,40}\b)?(?:error|fatal): ", re.IGNORECASE)
"""How a line begins that says what is wrong: npm's, pip's and most others'."""

_LINES_OF_A_REASON: Final = 2


class InstallOutput:
    """Both streams of an installation together."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._news = asyncio.Event()

    async def hear(self, data: bytes) -> None:
        """Take what the installation said."""
        self._kept += data
        del self._kept[:-KEPT_BYTES]
        self._news.set()

    async def tell(self, progress: Progress, share: float) -> None:
        """Show the newest line whenever there is one, until it is cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            if lines := _lines(self._kept[-LOOKED_AT:]):
                progress(f"installing: {lines[-1][:SHOWN]}", share)
            await asyncio.sleep(TELL_S)  # what comes meanwhile is one piece of news

    @property
    def text(self) -> str:
        """What is kept, a line each, without anything that acts on a terminal."""
        return "".join(f"{line}\n" for line in _lines(self._kept))

    def reason(self) -> str:
        """Return the words that tell best why it failed: its first complaints, else its end."""
        lines = [line[:SHOWN] for line in _lines(self._kept)]
        told = list(dict.fromkeys(line for line in lines if _TELLS.match(line)))
        return "; ".join(told[:_LINES_OF_A_REASON] or lines[-1:]) or "it said nothing"


def _lines(data: bytes | bytearray) -> list[str]:
    """Return the lines that are not empty; what a line wrote over itself is one of its own."""
    text = data.decode("utf-8", "replace").replace("\r", "\n")
    return [line for raw in text.split("\n") if (line := printable(raw).strip())]
