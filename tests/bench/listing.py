"""What a huge listing costs the keeper: memory and processor time of mirror passes.

`python -m tests.bench.listing --json [--entries N]`; 300,000 links that an agent made, sent by a
process of its own in frames as PID 1 sends them. A pass that finds nothing new is the one that an
idle session makes again and again. `peak_mb` is what the pass took at its worst on top of what
the process had before it, `held_mb` what is still held after it; `desk_*` is the review's part.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import socket
import struct
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from app.agents import shell
from app.keeper.desk import Desk
from app.keeper.mirroring import MAX_ENTRIES, Mirror
from app.records import SessionRecord
from snapshot.base_reader import BaseReader
from snapshot.blobs import BlobStore
from snapshot.capture import CaptureOptions, load_snapshot, take_snapshot
from tests.bench.processes import peak
from tests.bench.report import publish
from vm.machine.bulk import BulkClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.keeper.links import Links

BATCH: Final = 600
"""Entries of one frame; some 60 KB, as PID 1's are."""

PAGE: Final = 4096
FOLDERS: Final = 300


class OneLink:
    """Links with a bulk client alone."""

    def __init__(self, bulk: BulkClient) -> None:
        self.bulk_lock = asyncio.Lock()
        self._bulk = bulk

    async def bulk(self) -> BulkClient:
        """Return the client."""
        return self._bulk

    async def drop_bulk(self) -> None:
        """Forget nothing: an error ends the measurement."""

    async def sync(self) -> None:
        """There is no disk."""


def entry(path: bytes, kind: bytes, inode: int, target: bytes) -> bytes:
    """Pack one entry."""
    mode = 0o40755 if kind == b"d" else 0o120777
    at = 1_796_000_000_000_000_000 + inode * 1_000_003
    fixed = struct.pack("<BBIIIQQQqq", kind[0], 0, mode, 1000, 1, inode, len(target), 0, at, at)
    length = struct.Struct("<H").pack
    return b"".join((length(len(path)), path, fixed, length(0), length(len(target)), target))


def entries(count: int) -> Iterator[bytes]:
    """Yield folders full of links, `count` in all."""
    for number in range(FOLDERS):
        yield entry(b"made/%03d" % number if number else b"made", b"d", number + 1, b"")
    for number in range(FOLDERS, count):
        path = b"made/%03d/link-%06d" % (1 + number % (FOLDERS - 1), number)
        yield entry(path, b"l", number + 1, b"../../target-%d" % number)


def frame(kind: bytes, payload: bytes) -> bytes:
    """Pack one frame."""
    return struct.pack("<I", len(payload) + 1) + kind + payload


def guest(end: socket.socket, count: int) -> None:
    """Answer every list request on the socket."""
    all_of_it = list(entries(count))
    frames = [frame(b"e", b"".join(all_of_it[at : at + BATCH])) for at in range(0, count, BATCH)]
    answer = b"".join([*frames, frame(b"z", struct.pack("<IB", count, 0))])
    while end.recv(4096):
        end.sendall(answer)


def resident() -> int:
    """Bytes that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def forget_peak() -> None:
    """Let `peak` begin again at what is held now (proc(5), clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")


async def passes(mirror: Mirror, links: OneLink, desk: Desk) -> dict[str, float]:
    """Do a first pass, hand it to the desk, and do one that finds nothing new; what each cost."""
    found: dict[str, float] = {}
    start = resident()
    for name in ("first", "desk", "idle"):
        forget_peak()
        before, cpu = resident(), time.process_time()
        if name == "desk":
            desk.take_over(mirror)
        else:
            fresh = await mirror.take(cast("Links", links))
            assert fresh == (name == "first")
        found[f"{name}_peak_mb"] = round((peak() - before) / 1e6)
        found[f"{name}_cpu_s"] = round(time.process_time() - cpu, 2)
        found[f"{name}_held_mb"] = round((resident() - start) / 1e6)
    return found


async def measure(folder: Path, count: int) -> dict[str, float]:
    """Build a session on an empty workspace and measure its passes."""
    workspace, session = folder / "w", folder / "s"
    workspace.mkdir()
    session.mkdir()
    take_snapshot(workspace, session, CaptureOptions())
    report = load_snapshot(session)
    blobs = BlobStore(session / "blobs")
    base = BaseReader(session / "workspace.squashfs", report.manifest, blobs)
    record = SessionRecord("0123456789", "bench", shell(), str(workspace), 0.0, "base", "")
    ours, theirs = socket.socketpair()
    child = multiprocessing.get_context("spawn").Process(target=guest, args=(theirs, count))
    child.start()
    theirs.close()
    bulk = BulkClient(*await asyncio.open_connection(sock=ours))
    try:
        mirror = Mirror(session, report, base, blobs)
        return await passes(mirror, OneLink(bulk), Desk(record, session, base, blobs))
    finally:
        await bulk.close()
        child.join()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true", help="the output is JSON in any case")
    parser.add_argument("--entries", type=int, default=MAX_ENTRIES)
    count = max(FOLDERS, parser.parse_args().entries)
    with tempfile.TemporaryDirectory() as name:
        publish({"entries": count, **asyncio.run(measure(Path(name), count))})


if __name__ == "__main__":
    main()
