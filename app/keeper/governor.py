"""Memory for one session's machine: promised before it starts, given back by its end alone.

Whoever wants memory takes a lock on the runtime folder, reads all claims that are alive, decides
and writes its own; so eight starts at once cannot be promised the same memory. All state homes of
the user that share the runtime folder are counted; what all other programs use is missing from
what the kernel calls available.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
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
    words,
)
from app.paths import private_folder
from app.processes import start_time
from app.records import Process

if TYPE_CHECKING:
    from app.keeper.ledger import Ledger
    from app.paths import Paths

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0
"""How often somebody who waits looks again, in seconds."""

READ_WAIT_S: Final = 60.0
"""Seconds that a client who wants a lost session's changes waits for memory at most."""

STEP_MIB: Final = 64
"""What is told of free memory is a multiple of this: each change is a write to the disk."""


class Governor:
    """One session's claim on memory. Used on one event loop."""

    def __init__(self, paths: Paths, ledger: Ledger) -> None:
        record = ledger.record
        self._ledger = ledger
        self._runtime = paths.runtime
        self._own = paths.sockets(record.id)
        self._session = record.id
        self._memory = record.limits.memory
        self._pool = record.limits.pool
        self._limit_s: float = record.limits.queue
        self._patience_s: float = self._limit_s
        self._claim: Claim | None = None

    async def enter(self, patience_s: float | None = None) -> None:
        """Ask for memory: it is promised at once, or this session gets its place in the line.

        `patience_s` is how long `granted` may wait, without it what the session's limits say; with
        0 this raises at once. Nothing happens to a claim that is there already.
        Raises AppError `no-memory` where the machine does not fit and is not to wait, or would
        wait in vain; then nothing is left behind.
        """
        await in_thread(partial(self._enter, patience_s))

    async def granted(self) -> None:
        """Return when the memory is promised; until then the session says that it waits.

        Raises AppError `no-memory` when patience is at its end; the claim is given up then.
        """
        until = time.monotonic() + self._patience_s
        while (found := await in_thread(self._look)) is not None:
            self._tell(found)
            if time.monotonic() >= until:
                self.leave()
                raise too_little(self._memory, found, self._patience_s)
            await asyncio.sleep(LOOK_S)
        if self._ledger.state.waits:
            self._ledger.change(waits="", message="")

    def _tell(self, found: Outlook) -> None:
        """Say how it looks, in steps that do not change at every look."""
        about = found._replace(free=found.free // STEP_MIB * STEP_MIB)
        hint = f"Stop another session, or call this start off: cloche stop {self._session}"
        self._ledger.change(waits="memory", message=words(self._memory, about), hint=hint)

    def hold(self, machine: Process) -> None:
        """Tie the claim to the machine: it is good until that ends, whoever ends it."""
        claim = self._claim or self._new()
        try:
            self._write(msgspec.structs.replace(claim, granted=True, machine=machine))
        except OSError as error:  # the machine runs: it is not ended for a number
            log.warning("the machine's memory is not noted: %s", error)

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

    def _enter(self, patience_s: float | None) -> None:
        highest = ceiling(host_memory().total, self._pool)
        if self._memory > highest:
            raise too_large(self._memory, highest, self._pool)
        with claim_files.deciding(self._runtime):
            if self._claim is not None and self._claim.machine is None:
                return  # it has its place already
            self._patience_s = self._limit_s if patience_s is None else patience_s
            mine, others = self._new(), self._others()
            found = self._outlook(mine, others)
            fits = found.free >= self._memory
            waiting = sum(not other.granted for other in others)
            if not fits and (not self._patience_s or waiting >= MAX_WAITING):
                raise too_little(self._memory, found)
            self._write(msgspec.structs.replace(mine, granted=fits))

    def _look(self) -> Outlook | None:
        """Take the memory if it is there now; else return how it looks."""
        with claim_files.deciding(self._runtime):
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
