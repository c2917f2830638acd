"""A session's trees without a machine: a real snapshot, and a guest made of a dictionary."""

from __future__ import annotations

import asyncio
import contextlib
import stat
from typing import TYPE_CHECKING, Any, cast

import msgspec

from app.agents import shell
from app.keeper.desk import Desk
from app.keeper.mirroring import Mirror
from app.records import SessionRecord
from app.wire_text import path_text
from snapshot.base_reader import BaseReader
from snapshot.blobs import DEFAULT_QUOTA, BlobStore
from snapshot.capture import CaptureOptions, load_snapshot, take_snapshot
from vm.machine.bulk import Fetched, GuestError, Listing
from vm.machine.entries import UpperEntry, UpperKind

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

    from app.keeper.links import Links
    from app.protocol import HunkInfo

NUMBERS = "".join(f"{number}\n" for number in range(1, 31))
"""A text whose every line can be told from the others."""


class FakeGuest:
    """The upper dir of a guest; stands in for both links at the process boundary."""

    def __init__(self) -> None:
        self.bulk_lock = asyncio.Lock()
        self.entries: dict[bytes, UpperEntry] = {}
        self.contents: dict[int, bytes] = {}
        self.fetched: list[bytes] = []
        self.frozen = False
        self.cut_short = False
        self.synced = 0
        self.most = 0
        self.torn: set[bytes] = set()
        self.failing: set[bytes] = set()
        self._inode = 100

    @property
    def links(self) -> Links:
        return cast("Links", self)

    def put(self, path: bytes, data: bytes, mode: int = 0o644) -> None:
        self._add(path, "file", stat.S_IFREG | mode, data)

    def remove(self, path: bytes) -> None:
        self._add(path, "whiteout", stat.S_IFCHR, b"")

    def folder(self, path: bytes, *, opaque: bool = False) -> None:
        self._add(path, "dir", stat.S_IFDIR | 0o755, b"")
        self.entries[path] = msgspec.structs.replace(self.entries[path], opaque=opaque)

    def link(self, path: bytes, target: bytes) -> None:
        self._add(path, "link", stat.S_IFLNK | 0o777, b"", target)

    def _add(
        self, path: bytes, kind: UpperKind, mode: int, data: bytes, target: bytes = b""
    ) -> None:
        self._inode += 1
        self.contents[self._inode] = data
        self.entries[path] = UpperEntry(
            path=path,
            kind=kind,
            opaque=False,
            redirect=b"",
            mode=mode,
            uid=1000,
            nlink=1,
            inode=self._inode,
            size=len(data),
            allocated=len(data),
            mtime_ns=self._inode,
            ctime_ns=self._inode,
            target=target,
        )

    async def watch(self, _still: Callable[[], bool]) -> None:
        """Wait for a link to die: none does."""
        await asyncio.Event().wait()

    async def bulk(self) -> FakeGuest:
        return self

    async def drop_bulk(self) -> None:
        return

    async def sync(self) -> None:
        self.synced += 1

    async def freeze(self) -> None:
        self.frozen = True

    async def list_upper(
        self, tree: str, entries: int, size: int, *, known: bytes = b""
    ) -> Listing:
        assert tree == "workspace"
        self.most = entries
        listed = [self.entries[path] for path in sorted(self.entries)]
        digest = repr(listed).encode()
        if digest == known:
            return Listing([], False, digest, known=True)
        return Listing(listed, self.cut_short, digest)

    async def fetch(
        self,
        tree: str,
        path: bytes,
        inode: int,
        max_size: int,
        sink: Callable[[bytes], object],
        timeout_s: float,
    ) -> Fetched:
        self.fetched.append(path)
        if path in self.failing:
            raise GuestError(2, "gone")
        data = self.contents[inode]
        sink(data)
        changed = 1 if path in self.torn else 0
        return Fetched(len(data), inode + changed, inode, len(data))


class Bench:
    """Snapshot, mirror and desk of one workspace."""

    def __init__(self, workspace: Path, folder: Path, quota: int = DEFAULT_QUOTA) -> None:
        self._quota = quota
        self.workspace = workspace
        self.folder = folder
        self.guest = FakeGuest()
        take_snapshot(workspace, folder, CaptureOptions())
        self.record = SessionRecord(
            "0123456789", "bench", shell(), path_text(workspace), 0.0, "base", ""
        )
        self.open()

    def open(self) -> None:
        """Begin as a new keeper does: from what is on disk."""
        report = load_snapshot(self.folder)
        blobs = BlobStore(self.folder / "blobs", self._quota)
        base = BaseReader(self.folder / "workspace.squashfs", report.manifest, blobs)
        self.mirror = Mirror(self.folder, report, base, blobs)
        self.mirror.load()
        self.desk = Desk(self.record, self.folder, base, blobs)
        self.desk.take_over(self.mirror)

    async def take(self, **options: Any) -> bool:
        changed = await self.mirror.take(self.guest.links, **options)
        self.desk.take_over(self.mirror)
        return changed


@contextlib.contextmanager
def bench_of(
    root: Path, files: Mapping[str, str | bytes], quota: int = DEFAULT_QUOTA
) -> Generator[Bench]:
    """Make a workspace of these files and its session below `root`."""
    workspace, folder = root / "project", root / "session"
    for name, content in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    folder.mkdir()
    made = Bench(workspace, folder, quota)
    try:
        yield made
    finally:
        made.desk.close()


async def agent_writes(bench: Bench, text: str, name: bytes = b"a.txt") -> None:
    """Let the agent write a file, and take it over."""
    bench.guest.put(name, text.encode())
    await bench.take()


def hunk(bench: Bench, path: str = "a.txt", index: int = 0) -> HunkInfo:
    """Return one hunk of a file as a client is told of it."""
    files = {file.path: file for file in bench.desk.changes().files}
    return files[path].hunks[index]
