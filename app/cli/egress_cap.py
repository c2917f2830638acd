"""`cloche egress cap`: another cap on what a session may use of models."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.client import fleet
from app.client.session import SessionClient
from app.errors import AppError
from app.protocol import CapChange

if TYPE_CHECKING:
    import argparse

    from app.cli.output import Output
    from app.paths import Paths
    from app.protocol import Meter


def put_cap(paths: Paths, arguments: argparse.Namespace, output: Output) -> None:
    """Put another cap on a session; what waits for it goes on."""
    named = arguments.usd is not None or arguments.tokens is not None
    if named == (arguments.answer is not None):
        hint = "Say --usd N and --tokens N, or one of: --more, --none, --stop"
        raise AppError("usage", "No cap was named, or more than one.", hint)
    info = fleet.find_session(paths, arguments.session)
    change = CapChange(arguments.answer, arguments.tokens, arguments.usd)
    word, meter = asyncio.run(_put(paths, info.id, change))
    value = {"session": info.id, "usd": meter.cap_usd, "tokens": meter.cap_tokens}
    value["stopped"] = meter.stopped
    output.result(value, lambda: output.line(f"{info.id}: {word}"))


async def _put(paths: Paths, session: str, change: CapChange) -> tuple[str, Meter]:
    """Return what holds now: in words, and as the session's meter has it."""
    async with await SessionClient.open(paths, session) as client:
        word = await client.egress_cap(change)
        return word, (await client.info()).meter
