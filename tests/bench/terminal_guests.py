"""Guests for benchmarks: `terminal_guests.py FOLDER COUNT WORK RATE` serves COUNT terminals.

Each is a `pane.sock` (FOLDER/0.sock …) whose guest repaints its page RATE times a second, in the
size that its pane asked for. WORK is a name of `terminal_inputs.REPAINTS`, or `quiet`: a prompt
that stands still. FOLDER/steps says how many steps the guests were given, for the rate is what was
asked for, not what a loaded machine keeps up with. Ends with its standard input.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.terminal_inputs import repaints
from tests.doubles.pane_server import PaneServer

STEPS = 240
SIZES_S = 60
FORGET = 1 << 20
"""A record longer than that is begun anew: nobody here connects twice."""


async def serve(folder: Path, count: int, work: str, rate: float) -> None:
    async with contextlib.AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(PaneServer(folder / f"{number}.sock"))
            for number in range(count)
        ]
        (folder / "ready").touch()
        for server in servers:
            await sized(server)
        if work == "quiet":
            await asyncio.gather(*(server.put(b"agent@cloche:/workspace$ ") for server in servers))
            await asyncio.Event().wait()
        await play(servers, work, rate, folder / "steps")


async def sized(server: PaneServer) -> None:
    """Wait until the pane has asked for a size."""
    await server.until(lambda: bool(server.sizes), SIZES_S)


async def play(servers: list[PaneServer], work: str, rate: float, told: Path) -> None:
    clips = {server.size: repaints(work, *server.size, STEPS) for server in servers}
    loop = asyncio.get_running_loop()
    when, number = loop.time(), 0
    while True:
        for place, server in enumerate(servers):
            await server.put(clips[server.size][(number + 7 * place) % STEPS])
            if len(server.record) > FORGET:
                server.record.clear()
        number += 1
        told.write_text(str(number))  # noqa: ASYNC240 - a few bytes in memory, on tmpfs or not
        when = max(when + 1 / rate, loop.time() - 0.5)
        await asyncio.sleep(max(0.0, when - loop.time()))


async def main() -> None:
    folder, count, work, rate = sys.argv[1:]
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(0, over.set)
    serving = asyncio.create_task(serve(Path(folder), int(count), work, float(rate)))
    ending = asyncio.create_task(over.wait())
    await asyncio.wait([serving, ending], return_when=asyncio.FIRST_COMPLETED)
    for task in (serving, ending):
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await serving


if __name__ == "__main__":
    asyncio.run(main())
