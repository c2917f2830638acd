"""Contents by their name: `blobs/<2 hex>/<blake3>`.

A name says what the bytes must be, so nothing is trusted twice: what is read is hashed again, what
is written appears under its name only when it is complete. No name of a guest ever becomes a path.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from blake3 import blake3

from snapshot.errors import SnapshotError, StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

DEFAULT_QUOTA: Final = 4 << 30
"""Most bytes of one session's contents: base contents that were read plus the agent's."""

_NAME: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


class QuotaExceeded(SnapshotError):
    """The store is full."""

    code = "quota"


class BlobStore:
    """Contents of one session."""

    def __init__(self, root: Path, quota: int = DEFAULT_QUOTA) -> None:
        """Use (or make) the folder `root`; `quota` is in bytes."""
        self._root = root
        self._quota = quota
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in root.glob(".blob-*"):  # a writer that was killed
            left.unlink(missing_ok=True)
        self._used = self._count = 0
        for item in self._items():
            self.account(item.stat().st_size)

    def _items(self) -> Iterator[os.DirEntry[str]]:
        for folder in os.scandir(self._root):
            if folder.is_dir():
                yield from os.scandir(folder)

    @property
    def used(self) -> int:
        """Bytes that the contents take."""
        return self._used

    @property
    def count(self) -> int:
        """How many contents there are."""
        return self._count

    @property
    def quota(self) -> int:
        """Most bytes that the contents may take."""
        return self._quota

    def prune(self, needed: Container[str]) -> int:
        """Remove every content that is not in `needed`; how many bytes that frees.

        Each is one unlink, so a kill in between leaves a store that is whole. Nobody may be
        between writing a content and needing it.
        """
        before = self._used
        for item in self._items():
            if item.name not in needed:
                size = item.stat(follow_symlinks=False).st_size
                os.unlink(item.path)
                self._used -= size
                self._count -= 1
        return before - self._used

    def path(self, digest: str) -> Path:
        """Where the content lies or would lie."""
        return Path(self._place(digest))

    def _place(self, digest: str) -> str:
        """Return the path as text: thousands of them at a time are asked for."""
        if not _NAME.fullmatch(digest):
            raise ValueError(f"{digest!r} is no blake3 name")
        return f"{self._root}/{digest[:2]}/{digest}"

    def has(self, digest: str) -> bool:
        """Whether the content is here."""
        return os.path.isfile(self._place(digest))

    def size(self, digest: str) -> int | None:
        """Give the content's length in bytes, or None when it is not here."""
        try:
            return self.path(digest).stat().st_size
        except FileNotFoundError:
            return None

    def put(self, data: bytes) -> str:
        """Store `data` and return its name. Raises QuotaExceeded."""
        digest = blake3(data).hexdigest()
        if not self.has(digest):
            with self.writer() as writer:
                writer.write(data)
                writer.commit()
        return digest

    def read(self, digest: str, limit: int | None = None) -> bytes | None:
        """Give the content, or None when it is not here or longer than `limit` bytes.

        Raises StoreDamaged when the file does not hold what its name says.
        """
        try:
            with open(self._place(digest), "rb") as file:
                if limit is not None and os.fstat(file.fileno()).st_size > limit:
                    return None
                data = file.read()
        except FileNotFoundError:
            return None
        if blake3(data).hexdigest() != digest:
            raise StoreDamaged(
                f"The stored content {digest} is damaged.",
                f"Remove it, the next pass fetches it again: rm '{self.path(digest)}'",
            )
        return data

    def writer(self) -> BlobWriter:
        """Begin a content that arrives in pieces."""
        return BlobWriter(self, self._root, self._quota)

    def account(self, size: int) -> None:
        """Count a content that a writer has moved into place."""
        self._used += size
        self._count += 1


class BlobWriter:
    """One content on its way in; leaving the `with` block without `commit` drops it."""

    def __init__(self, store: BlobStore, root: Path, quota: int) -> None:
        self._store = store
        self._quota = quota
        descriptor, self._name = tempfile.mkstemp(dir=root, prefix=".blob-")
        self._file = os.fdopen(descriptor, "wb")
        self._hash = blake3()
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._size

    def write(self, data: bytes) -> None:
        """Append `data`. Raises QuotaExceeded before anything beyond the quota is written."""
        if self._store.used + self._size + len(data) > self._quota:
            raise QuotaExceeded(
                f"The session's contents would exceed {self._quota} bytes.",
                "Let the agent remove or shrink large files in its workspace.",
            )
        self._size += len(data)
        self._hash.update(data)
        self._file.write(data)

    def digest(self) -> str:
        """Give the name of what was written so far."""
        return self._hash.hexdigest()

    def commit(self) -> str:
        """Give the content its name and return that."""
        digest = self._hash.hexdigest()
        target = self._store.path(digest)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if not target.exists():
            target.parent.mkdir(mode=0o700, exist_ok=True)
            os.replace(self._name, target)
            self._store.account(self._size)
        return digest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._name)
