"""Contents of the base, read out of the snapshot's image and kept as blobs.

One unsquashfs writes the contents of many files behind each other; the manifest's sizes cut them
apart and its digests prove every piece, so a wrong cut cannot go unseen.
"""

from __future__ import annotations

import subprocess
import threading
from typing import IO, TYPE_CHECKING, Final

from snapshot.display import printable
from snapshot.errors import StoreDamaged
from snapshot.image_writer import clean_environment, tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from snapshot.blobs import BlobStore
    from snapshot.manifest import Entry, Manifest

BATCH_BYTES: Final = 64 << 10
"""Most bytes of names for one process."""

BATCH_FILES: Final = 1000
DEADLINE_S: Final = 300.0
"""Longest time for one batch."""

CHUNK: Final = 1 << 20

_OPTIONS: Final = ("-no-progress", "-processors", "1", "-da", "16", "-fr", "16", "-no-wildcards")


class BaseReader:
    """Reads files of one image by their path in the manifest."""

    def __init__(self, image: Path, manifest: Manifest, blobs: BlobStore) -> None:
        """Nothing is read yet; blobs of earlier readers are used."""
        self._image = image
        self._manifest = manifest
        self._blobs = blobs

    def ensure(self, paths: Iterable[bytes]) -> None:
        """Put the contents of these files into the blobs (many files with few processes).

        Blocks; run it in a thread. Raises KeyError for what is no file of the base, StoreDamaged,
        ToolMissing, QuotaExceeded.
        """
        wanted: dict[str, bytes] = {}
        for path in paths:
            entry = self._file(path)
            if not self._blobs.has(entry.digest):
                wanted.setdefault(entry.digest, path)
        for batch in _batches(sorted(wanted.values())):
            self._extract(batch)

    def read(self, path: bytes) -> bytes:
        """Read one file's content. Raises as `ensure` does."""
        self.ensure([path])
        content = self._blobs.read(self._file(path).digest)
        if content is None:
            raise self._damaged(path)
        return content

    def content(self, digest: str, limit: int | None = None) -> bytes | None:
        """Give a content by its name, from the blobs or from the image; None when neither has it.

        `limit` is the most bytes of interest: a longer content is None as well.
        """
        found = self._blobs.read(digest, limit)
        if found is not None or self._blobs.has(digest):
            return found
        path = self._manifest.path_of(digest)
        if path is None or (limit is not None and self._file(path).size > limit):
            return None
        self.ensure([path])
        return self._blobs.read(digest, limit)

    def _file(self, path: bytes) -> Entry:
        entry = self._manifest[path]
        if entry.kind != "file":
            raise KeyError(path)
        return entry

    def _extract(self, paths: Sequence[bytes]) -> None:
        names = [b"/" + path for path in paths]  # a leading dash would be an option
        process = subprocess.Popen(
            [tool("unsquashfs"), *_OPTIONS, "-cat", str(self._image), *names],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._image.parent,
            env=clean_environment(),
        )
        timer = threading.Timer(DEADLINE_S, process.kill)
        timer.daemon = True
        timer.start()
        try:
            with process:
                self._take_all(paths, process)
        finally:
            timer.cancel()
        if process.returncode != 0:
            raise self._damaged(paths[-1])

    def _take_all(self, paths: Sequence[bytes], process: subprocess.Popen[bytes]) -> None:
        try:
            for path in paths:
                self._take(path, process.stdout)
        except BaseException:
            process.kill()  # here, for leaving the process's own block waits for its end
            raise

    def _take(self, path: bytes, stream: IO[bytes] | None) -> None:
        """Read one content off the stream into the blobs."""
        entry = self._file(path)
        left = entry.size
        with self._blobs.writer() as writer:
            while left and stream is not None:
                chunk = stream.read(min(left, CHUNK))
                if not chunk:
                    raise self._damaged(path)
                left -= len(chunk)
                writer.write(chunk)
            if writer.digest() != entry.digest:
                raise self._damaged(path)
            writer.commit()

    def _damaged(self, path: bytes) -> StoreDamaged:
        return StoreDamaged(
            f"The snapshot {self._image} does not hold '{printable(path)}' as listed.",
            "The session's base is lost; remove it with: cloche rm ID",
        )


def _batches(paths: Sequence[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for path in paths:
        if batch and (size + len(path) > BATCH_BYTES or len(batch) >= BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += len(path) + 1
    if batch:
        yield batch
