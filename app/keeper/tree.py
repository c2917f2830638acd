"""The trees of one session joined: base snapshot, mirror of the guest, review desk.

Everything slow runs in a thread; passes and reviews of one session wait for each other.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from app.errors import AppError
from app.keeper.desk import Desk
from app.keeper.memory_back import give_back
from app.keeper.mirroring import Mirror
from app.keeper.threads import in_thread
from app.protocol import Counts
from snapshot.base_reader import BaseReader
from snapshot.blobs import BlobStore
from snapshot.capture import load_snapshot
from snapshot.capture_report import IMAGE

if TYPE_CHECKING:
    from pathlib import Path

    from app.keeper.links import Links
    from app.records import SessionRecord


class Tree:
    """What a session's agent changed; closed until its snapshot exists."""

    def __init__(self, record: SessionRecord, folder: Path) -> None:
        self._record = record
        self._folder = folder
        self._mirror: Mirror | None = None
        self._desk: Desk | None = None
        self._behind = False  # the mirror has a generation that the desk could not take over
        self._turn = asyncio.Lock()
        self.counts = Counts()

    async def open(self) -> None:
        """Load the snapshot's list, the last generation and the decisions. Raises StoreDamaged."""
        async with self._turn:
            if self._desk is None:
                await in_thread(self._load)

    def _load(self) -> None:
        report = load_snapshot(self._folder)
        blobs = BlobStore(self._folder / "blobs")
        base = BaseReader(self._folder / IMAGE, report.manifest, blobs)
        mirror = Mirror(self._folder, report, base, blobs)
        mirror.load()
        desk = Desk(self._record, self._folder, base, blobs)
        self.counts = desk.take_over(mirror)
        self._mirror, self._desk = mirror, desk
        give_back()

    @property
    def desk(self) -> Desk:
        """The review desk. Raises AppError `not-ready` until the snapshot exists."""
        if self._desk is None:
            raise AppError(
                "not-ready",
                f"The session {self._record.id} has no snapshot yet.",
                f"Wait for it: cloche ps (or start it again: cloche resume {self._record.id})",
            )
        return self._desk

    async def open_units(self) -> int:
        """Count the hunks and aspects that wait for a decision."""
        desk = self.desk
        return await in_thread(lambda: desk.open_units)

    @property
    def generation(self) -> int:
        """The number of the last generation; 0 before the first pass."""
        return self._mirror.generation if self._mirror is not None else 0

    async def take(self, links: Links, *, freeze: bool = False) -> bool:
        """Do one mirror pass; True when there is a new generation and the desk has it."""
        async with self._turn:
            desk, mirror = self.desk, self._mirror
            if mirror is None:
                return False
            taken = await mirror.take(links, freeze=freeze)
            if not taken and not self._behind:
                return False
            self._behind = True
            self.counts = await in_thread(partial(desk.take_over, mirror))
            self._behind = False
            await in_thread(give_back)
            return True

    async def close(self) -> None:
        """Close the files."""
        async with self._turn:
            if self._desk is not None:
                self._desk.close()
                self._desk = None
