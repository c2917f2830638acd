"""`cloche egress cap`: another cap on what a session may use of models."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.client import fleet
from app.client.session import SessionClient
from app.errors import AppError

if TYPE_CHECKING:
    import argparse

    from app.cli.output import Output
    from app.paths import Paths


def put_cap(paths: Paths, arguments: argparse.Namespace, output: Output) -> None:
    """Put another cap on a session; what waits for it goes on."""
    if arguments.usd is None and arguments.tokens is None:
        raise AppError("usage", "No cap was named.", "Say: --usd N or --tokens N")
    info = fleet.find_session(paths, arguments.session)
    asyncio.run(_put(paths, info.id, arguments.tokens, arguments.usd))
    value = {"session": info.id, "usd": arguments.usd, "tokens": arguments.tokens}
    output.result(value, lambda: output.line(f"{info.id} has another cap; see: cloche ps --json"))


async def _put(paths: Paths, session: str, tokens: int | None, usd: float | None) -> None:
    async with await SessionClient.open(paths, session) as client:
        await client.egress_cap(tokens, usd)
