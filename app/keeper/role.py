"""The process of a keeper: detaches itself, serves both sockets, ends when nobody needs it."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.paths import Paths

if TYPE_CHECKING:
    from collections.abc import Sequence

IDLE_S: Final = 10.0
"""Seconds that a keeper without a machine stays after its last client has gone."""

THREADS: Final = 3
"""Threads for disk and diffs; more would only cost memory."""

log = logging.getLogger(__name__)


def run(arguments: Sequence[str]) -> int:
    """Run the keeper of one session folder; the first process returns at once."""
    parser = argparse.ArgumentParser(prog="cloche _role keeper")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lock", type=int, required=True)
    parser.add_argument("--start", action="store_true")
    options = parser.parse_args(arguments)
    os.set_inheritable(options.lock, False)  # QEMU outlives us and must not hold our lock
    if os.fork() > 0:
        return 0
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    for name in ("asyncssh", "qemu.qmp"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    log.info("keeper %d of %s", os.getpid(), options.folder)
    asyncio.run(_serve(options.folder, start=options.start))
    return 0


async def _serve(folder: Path, *, start: bool) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    from app.keeper.house import House
    from app.keeper.places import place_sockets

    paths = Paths.from_environment()
    place_sockets(paths, folder)
    house = House(paths, folder)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, house.quit)
    await house.run(start=start, idle_s=IDLE_S)
