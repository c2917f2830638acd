"""`cloche send`: types a prompt into the agent's terminal and submits it."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Final

from app.client import fleet
from app.client.session import SessionClient
from app.errors import EXIT_DONE, AppError, not_running
from app.paths import Paths
from app.programs import check_text

if TYPE_CHECKING:
    import argparse

    from app.cli.output import Output

MAX_STDIN: Final = 1 << 20
"""Bytes that are read of stdin; the keeper takes fewer and says how many."""


def send(arguments: argparse.Namespace, output: Output) -> int:
    """Send a prompt exactly once: it is never tried again, whatever happens."""
    check_text(arguments.text)
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session)
    if info.state != "running":
        raise not_running(info.id, info.state, info.message, info.hint)
    text = read_stdin() if arguments.text == "-" else arguments.text
    asyncio.run(_send(paths, info.id, text))
    output.result(
        {"session": info.id, "characters": len(text)},
        lambda: output.line(f"Sent. Watch: cloche attach {info.id} --read-only"),
    )
    return EXIT_DONE


def read_stdin() -> str:
    """Return the text on stdin. Raises AppError `usage` where it is too long or no UTF-8."""
    data = sys.stdin.buffer.read(MAX_STDIN + 1)
    if len(data) > MAX_STDIN:
        raise AppError("usage", "The text on stdin is too long.", "cloche cp FILE ID:/tmp/")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise AppError("usage", "The text on stdin is not UTF-8.", "cloche send ID TEXT") from error


async def _send(paths: Paths, session: str, text: str) -> None:
    async with await SessionClient.open(paths, session) as client:
        await client.send(text)
