"""Contents of the base, read out of the snapshot's image and kept as blobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from snapshot.blobs import BlobStore
    from snapshot.manifest import Manifest


class BaseReader:
    """Reads files of one image by their path in the manifest."""

    def __init__(self, image: Path, manifest: Manifest, blobs: BlobStore) -> None:
        """Nothing is read yet."""

    def ensure(self, paths: Iterable[bytes]) -> None:
        """Put the contents of these files into the blobs (many files with few processes).

        Blocks; run it in a thread. Raises StoreDamaged, ToolMissing.
        """
        raise NotImplementedError

    def read(self, path: bytes) -> bytes:
        """One file's content, digest checked. Raises KeyError for what is no file of the base."""
        raise NotImplementedError
