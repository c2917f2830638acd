"""`cloche port`: ports of this host's 127.0.0.1 that lead to a session's guest."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

import msgspec

from app.client import fleet
from app.client.session import SessionClient
from app.errors import EXIT_DONE, AppError, not_running
from app.paths import Paths
from app.protocol import Forward

if TYPE_CHECKING:
    import argparse

    from app.cli.output import Output

PORTS: Final = re.compile(r"([0-9]{1,5})(?::([0-9]{1,5}))?")


def port(arguments: argparse.Namespace, output: Output) -> int:
    """Forward, remove or list ports; a list of what there is now is the answer."""
    asked = parse_forward(arguments.forward) if arguments.forward else None
    if asked is not None and arguments.remove is not None:
        raise AppError("usage", "Add or remove, one at a time.", "cloche port --help")
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session)
    if info.state != "running":
        raise not_running(info.id, info.state, info.message, info.hint)
    forwards = asyncio.run(_change(paths, info.id, asked, arguments.remove))
    output.result(
        {"session": info.id, "ports": [msgspec.to_builtins(one) for one in forwards]},
        lambda: _print(output, forwards),
    )
    return EXIT_DONE


def parse_forward(text: str) -> Forward:
    """Return what `HOST:GUEST` or `PORT` means. Raises AppError `usage`."""
    found = PORTS.fullmatch(text)
    if found is None:
        raise AppError("usage", f"'{text}' names no ports.", "HOST:GUEST, such as 8080:80")
    return Forward(int(found[1]), int(found[2] or found[1]))


async def _change(
    paths: Paths, session: str, asked: Forward | None, remove: int | None
) -> list[Forward]:
    async with await SessionClient.open(paths, session) as client:
        if asked is not None:
            await client.add_port(asked)
        if remove is not None:
            await client.remove_port(remove)
        return await client.ports()


def _print(output: Output, forwards: list[Forward]) -> None:
    if not forwards:
        output.line("No ports. Forward one: cloche port ID HOST:GUEST")
    for one in forwards:
        problem = f"  (not now: {one.problem})" if one.problem else ""
        output.line(f"127.0.0.1:{one.host_port} -> guest 127.0.0.1:{one.guest_port}{problem}")
