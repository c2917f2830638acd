"""`cloche attach` on a `pane.sock` alone, without a keeper: `attach_program.py SOCKET PREFIX`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.cli import attach
from app.client.terminal import PaneClient


async def main() -> int:
    """Carry this terminal until the user leaves."""
    pane = await PaneClient.open(Path(sys.argv[1]))
    attachment = attach._Attachment(pane, sys.argv[2], read_only=False)  # pyright: ignore[reportPrivateUsage]
    with attach.raw_terminal(main_screen=b""):
        return await attachment.run() or 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
