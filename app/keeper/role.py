"""The process of a keeper: detaches itself, serves both sockets, ends when nobody needs it."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import resource
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.keeper.outside import Outside
from app.paths import Paths
from vm.egress.proxy import VARIABLES, from_environment

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
    parser.add_argument("--variables", type=int, default=-1)
    options = parser.parse_args(arguments)
    os.set_inheritable(options.lock, False)  # QEMU outlives us and must not hold our lock
    if options.variables >= 0:
        os.set_inheritable(options.variables, False)  # keys, which only the broker reads
    if os.fork() > 0:
        return 0
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    for name in ("asyncssh", "qemu.qmp"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    log.info("keeper %d of %s", os.getpid(), options.folder)
    asyncio.run(_serve(options.folder, _outside(options.variables), start=options.start))
    return 0


def _outside(variables: int) -> Outside:
    """Take the ways out of our environment: their credentials are no child's business.

    Nor does a core dump of ours, or of the machine that we start, leave any of it on the disk.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    found = from_environment(os.environ)
    for name in VARIABLES:
        os.environ.pop(name, None)
        os.environ.pop(name.upper(), None)
    return Outside(found, variables)


async def _serve(folder: Path, outside: Outside, *, start: bool) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    from app.keeper.house import House
    from app.keeper.places import place_sockets

    paths = Paths.from_environment()
    place_sockets(paths, folder)
    house = House(paths, folder, outside)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, house.quit)
    await house.run(start=start, idle_s=IDLE_S)
