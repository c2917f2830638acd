"""`cloche attach` on a `pane.sock` alone, without a keeper.

`attach_program.py SOCKET PREFIX [WHAT COMMAND]`: what waits for the user, and what answers it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.cli import attach
from app.cli.waiting import Wait
from app.client.terminal import PaneClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def main() -> int:
    """Carry this terminal until the user leaves."""
    pane = await PaneClient.open(Path(sys.argv[1]))
    attachment = attach._Attachment(pane, sys.argv[2], read_only=False)  # pyright: ignore[reportPrivateUsage]
    with attach.raw_terminal(main_screen=b""):
        return await attachment.run(news()) or 0


async def news() -> AsyncIterator[Wait]:
    """Yield what the arguments say."""
    if sys.argv[3:]:
        yield Wait(*sys.argv[3:])


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
