"""The change mirror: what the agent changed, fetched from the guest and kept on this side.

A pass lists the upper dir of `/workspace`, fetches the contents that are new, resolves both against
the base and writes `mirror.json`. When that file is written, the generation exists.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from app.files import read_regular, write_pieces
from app.keeper.threads import in_thread
from app.wire_text import to_bytes, to_text
from snapshot import mirror as snapshot_mirror
from snapshot.blobs import QuotaExceeded
from snapshot.changes import ChangeSet, compare
from snapshot.errors import ListingRefused, SnapshotError
from snapshot.mirror import FileKey, Limits
from snapshot.renames import MAX_SIMILAR_BYTES
from vm.errors import VMError
from vm.machine.bulk import GuestError
from vm.machine.entries import UpperEntry
from vm.steps import reached

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from app.keeper.links import Links
    from snapshot.base_reader import BaseReader
    from snapshot.blobs import BlobStore
    from snapshot.capture import SnapshotReport
    from snapshot.mirror import AgentTree, Fetch
    from vm.machine.bulk import BulkClient, Listing

log = logging.getLogger(__name__)

MAX_LISTING: Final = 256 << 20
"""Bytes of one listing; with MAX_ENTRIES the bound on what a guest makes us hold."""

MAX_ENTRIES: Final = 300_000
"""Entries of one listing; figures: `python -m tests.bench.listing`."""

FETCH_S: Final = 120.0

PIECE: Final = 1 << 18
"""Bytes of `mirror.json` that are made at a time."""


class Row(msgspec.Struct, frozen=True, array_like=True):
    """One listed entry in `mirror.json`."""

    path: str
    kind: str
    opaque: bool
    redirect: str
    mode: int
    uid: int
    nlink: int
    inode: int
    size: int
    allocated: int
    mtime_ns: int
    ctime_ns: int
    target: str


class Content(msgspec.Struct, frozen=True, array_like=True):
    """Which blob holds the content of one inode's state."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    digest: str


class Saved(msgspec.Struct, frozen=True):
    """All of `mirror.json`."""

    generation: int
    rows: tuple[Row, ...]
    contents: tuple[Content, ...]
    listed: str = ""
    """The digest of the list as the guest sent it, in hex."""
    format: int = 1


class Mirror:
    """The mirrored tree of one session and its generation number."""

    def __init__(
        self, folder: Path, base: SnapshotReport, reader: BaseReader, blobs: BlobStore
    ) -> None:
        self._path = folder / "mirror.json"
        self._base = base
        self._reader = reader
        self._blobs = blobs
        self._contents: dict[FileKey, str] = {}
        self._listed = b""  # the digest of the list that the generation was made of
        self._limits = Limits(entries=MAX_ENTRIES)
        self._failed = False
        self.generation = 0
        self.tree: AgentTree = snapshot_mirror.resolve(base.manifest, (), {})
        self.changes = ChangeSet()

    def load(self) -> None:
        """Take up the last generation that was written; blocks, run it in a thread."""
        try:
            saved = msgspec.json.decode(read_regular(self._path, 1 << 30), type=Saved)
        except FileNotFoundError:
            return
        self._contents = {
            FileKey(c.inode, c.size, c.mtime_ns, c.ctime_ns): c.digest
            for c in saved.contents
            if self._blobs.has(c.digest)
        }
        self._failed = len(self._contents) < len(saved.contents)  # the next pass fetches them
        self._listed = bytes.fromhex(saved.listed)
        self.generation = saved.generation
        self._show(self._resolved(map(_entry, saved.rows)))

    @property
    def fetched(self) -> Iterable[str]:
        """The names of all contents that were fetched and are listed."""
        return self._contents.values()

    async def take(self, links: Links, *, freeze: bool = False) -> bool:
        """Do one pass; True when there is a new generation.

        With `freeze` the agent is frozen (and the guest's disks synced) first and stays so. Raises
        LinkLost and other errors of `vm`, and those of `snapshot` when the listing is refused.
        """
        async with links.bulk_lock:
            try:
                bulk = await links.bulk()
                if freeze:
                    await bulk.freeze()
                return await self._pass(bulk, None if freeze else links)
            except GuestError:
                raise
            except (VMError, OSError, SnapshotError):  # a full disk breaks a transfer off as well
                await links.drop_bulk()
                raise

    async def _pass(self, bulk: BulkClient, syncing: Links | None) -> bool:
        known = b"" if self._failed else self._listed
        listing = await bulk.list_upper("workspace", MAX_ENTRIES, MAX_LISTING, known=known)
        if listing.known:
            return False
        if listing.truncated:  # what is missing would look as if it were deleted, or as in the base
            raise ListingRefused(
                "The agent made more files, or deeper folders, than can be listed.",
                "Let it remove what is not needed: cloche exec ID -- rm -r DIR",
            )
        same = listing.digest == self._listed  # then contents are missing
        plan = await in_thread(partial(self._plan, listing.entries))
        fetched = [await self._fetch(bulk, fetch) for fetch in plan]
        self._failed = not all(fetched)
        if same and not any(fetched):
            return False
        # what the mirror shows must be on the guest's disk too: should the machine die, its disk
        # would else hold less than the mirror, and the next pass would take that for a change
        if syncing is not None:
            await syncing.sync()
        await in_thread(partial(self._finish, listing))
        return True

    def _plan(self, entries: Iterable[UpperEntry]) -> list[Fetch]:
        return snapshot_mirror.plan_fetches(
            self._base.manifest, entries, self._contents, self._limits, self._base.rules
        )

    async def _fetch(self, bulk: BulkClient, fetch: Fetch) -> bool:
        if self._blobs.used + fetch.size > self._blobs.quota:
            return False  # asked first, for a transfer that is broken off ends the link
        try:
            with self._blobs.writer() as writer:
                done = await bulk.fetch(
                    "workspace", fetch.path, fetch.inode, fetch.size, writer.write, FETCH_S
                )
                key = FileKey(fetch.inode, done.size, done.mtime_ns, done.ctime_ns)
                # a file that changed while it was read is taken by the next pass
                if key != fetch.key or done.received != done.size:
                    return False
                self._contents[fetch.key] = writer.commit()
                return True
        except GuestError as error:
            log.info("a content could not be fetched: %s", error.message)
            return False

    def _finish(self, listing: Listing) -> None:
        reached("pass.fetched")
        self._forget_unlisted(listing.entries)
        tree = self._resolved(listing.entries)
        write_pieces(self._path, self._saved(self.generation + 1, listing))
        listing.entries.clear()  # a long list is large, and all that is shown of it is in the tree
        self._show(tree)
        self._listed = listing.digest
        self.generation += 1

    def _saved(self, generation: int, listing: Listing) -> Iterator[bytes | bytearray]:
        """Yield `mirror.json` (a Saved) piece by piece: a long list is not held twice."""
        encoder, data = msgspec.json.Encoder(), bytearray(b'{"generation":%d' % generation)
        rows = (_row(entry) for entry in listing.entries)
        contents = (Content(*key, digest) for key, digest in self._contents.items())
        for name, values in (("rows", rows), ("contents", contents)):
            data += b',"%s":[' % name.encode()
            for number, value in enumerate(values):
                if number:
                    data += b","
                encoder.encode_into(value, data, -1)
                if len(data) >= PIECE:
                    yield data
                    data = bytearray()
            data += b"]"
        yield data + b',"listed":"%s","format":1}' % listing.digest.hex().encode()

    def _forget_unlisted(self, entries: Iterable[UpperEntry]) -> None:
        keys = (FileKey(e.inode, e.size, e.mtime_ns, e.ctime_ns) for e in entries)
        self._contents = {key: self._contents[key] for key in keys if key in self._contents}

    def _resolved(self, entries: Iterable[UpperEntry]) -> AgentTree:
        return snapshot_mirror.resolve(self._base.manifest, entries, self._contents, self._limits)

    def _show(self, tree: AgentTree) -> None:
        changes = compare(self._base.manifest, tree, self._base.rules, self._content)
        self.tree, self.changes = tree, changes

    def _content(self, digest: str) -> bytes | None:
        """Give a content to look for renames; without it one is shown as two changes."""
        try:
            return self._reader.content(digest, MAX_SIMILAR_BYTES)
        except QuotaExceeded:
            return None


def _row(entry: UpperEntry) -> Row:
    return Row(
        to_text(entry.path),
        entry.kind,
        entry.opaque,
        to_text(entry.redirect),
        entry.mode,
        entry.uid,
        entry.nlink,
        entry.inode,
        entry.size,
        entry.allocated,
        entry.mtime_ns,
        entry.ctime_ns,
        to_text(entry.target),
    )


def _entry(row: Row) -> UpperEntry:
    fields = msgspec.structs.asdict(row)
    for name in ("path", "redirect", "target"):
        fields[name] = to_bytes(fields[name])
    return UpperEntry(**fields)
