"""Memory for one session's machine: promised before it starts, given back by its end alone.

Whoever wants memory takes a lock on the runtime folder, reads all claims that are alive, decides
and writes its own; so eight starts at once cannot be promised the same memory. All state homes of
the user that share the runtime folder are counted; what all other programs use is missing from
what the kernel calls available.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from app.files import write_atomic
from app.host_memory import host_memory, resident
from app.keeper import claim_files
from app.keeper.threads import in_thread
from app.memory_claims import (
    MAX_WAITING,
    Claim,
    Outlook,
    budget,
    ceiling,
    outlook,
    too_large,
    too_little,
)
from app.paths import private_folder
from app.processes import start_time
from app.records import Process

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.paths import Paths
    from app.records import SessionRecord

LOOK_S: Final = 1.0
"""How often somebody who waits looks again, in seconds."""


class Governor:
    """One session's claim on memory. Used on one event loop."""

    def __init__(self, paths: Paths, record: SessionRecord) -> None:
        self._runtime = paths.runtime
        self._own = paths.sockets(record.id)
        self._session = record.id
        self._memory = record.limits.memory
        self._pool = record.limits.pool
        self._claim: Claim | None = None

    async def enter(self, *, wait: bool) -> None:
        """Ask for memory: it is promised at once, or this session gets its place in the line.

        Raises AppError `no-memory` where it does not fit and is not to wait, or would wait in vain;
        then nothing is left behind.
        """
        await in_thread(partial(self._enter, wait))

    async def granted(self, seconds: float, tell: Callable[[Outlook], None]) -> None:
        """Return when the memory is promised, after `seconds` at most; `tell` hears how it looks.

        Raises AppError `no-memory`; the claim is given up then.
        """
        until = time.monotonic() + seconds
        while (found := await in_thread(self._look)) is not None:
            tell(found)
            if time.monotonic() >= until:
                self.leave()
                raise too_little(self._memory, found, seconds)
            await asyncio.sleep(LOOK_S)

    def hold(self, machine: Process) -> None:
        """Tie the claim to the machine: it is good until that ends, whoever ends it."""
        claim = self._claim or self._new()
        self._write(msgspec.structs.replace(claim, granted=True, machine=machine))

    def leave(self) -> None:
        """Give the claim up, unless a machine still lives on it."""
        claim, self._claim = self._claim, None
        if claim is not None and claim.machine is not None and claim.machine.alive:
            return
        with contextlib.suppress(FileNotFoundError):
            (self._own / claim_files.CLAIM).unlink()

    def _new(self) -> Claim:
        keeper = Process.here(os.getpid(), start_time(os.getpid()))
        return Claim(self._session, self._memory, keeper, time.clock_gettime(time.CLOCK_BOOTTIME))

    def _enter(self, wait: bool) -> None:
        highest = ceiling(host_memory().total, self._pool)
        if self._memory > highest:
            raise too_large(self._memory, highest, self._pool)
        with claim_files.locked(self._runtime):
            mine, others = self._new(), self._others()
            found = self._outlook(mine, others)
            fits = found.free >= self._memory
            waiting = sum(not other.granted for other in others)
            if not fits and (not wait or waiting >= MAX_WAITING):
                raise too_little(self._memory, found)
            self._write(msgspec.structs.replace(mine, granted=fits))

    def _look(self) -> Outlook | None:
        """Take the memory if it is there now; else return how it looks."""
        with claim_files.locked(self._runtime):
            mine = self._claim or self._new()
            if mine.granted:
                return None
            found = self._outlook(mine, self._others())
            if found.free < self._memory:
                return found
            self._write(msgspec.structs.replace(mine, granted=True))
            return None

    def _others(self) -> list[Claim]:
        found = claim_files.living(self._runtime)
        return [claim for folder, claim in found.items() if folder != self._own]

    def _outlook(self, mine: Claim, others: list[Claim]) -> Outlook:
        held = sum(resident(claim.machine.pid) for claim in others if claim.machine is not None)
        return outlook(mine, others, budget(host_memory().available, held, self._pool))

    def _write(self, claim: Claim) -> None:
        private_folder(self._own)
        write_atomic(self._own / claim_files.CLAIM, msgspec.json.encode(claim) + b"\n")
        self._claim = claim
