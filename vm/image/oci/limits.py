"""Bounds on what an image may hold. Whoever made it may have made it to do harm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vm.errors import ImageRefused

MAX_DOCUMENT: Final = 4 << 20
"""Bytes of a manifest, an index or a config; registries allow about as much."""

MAX_LAYERS: Final = 512
MAX_FETCHED: Final = 16 << 30
"""Bytes that may arrive from a registry or out of an archive."""

MAX_NAME: Final = 255
"""Bytes of one component of a path: what Linux and squashfs can hold."""

MAX_PATH: Final = 4095
MAX_DEPTH: Final = 256
MAX_HOPS: Final = 40
"""Symbolic links that are followed on the way to one path, as Linux does."""

MAX_ID: Final = (1 << 32) - 2
"""Largest user or group id; the one above means none."""

MAX_IDS: Final = 60_000
"""Different ids; squashfs holds 65,536."""


@dataclass
class Budget:
    """What all layers of one image may hold together; counts down, and refuses at zero."""

    total: int = 32 << 30
    """Bytes that layers may unpack to."""
    entry: int = 8 << 30
    """Bytes of one file, holes counted."""
    entries: int = 500_000
    text: int = 256 << 20
    """Bytes of all names: a name can be as long as a small file."""
    steps: int = 50_000_000
    """Components of paths that are looked up, those of links on the way too."""

    def spend_bytes(self, count: int) -> None:
        """Note bytes that were unpacked. Raises ImageRefused when there are too many."""
        self.total -= count
        if self.total < 0:
            raise ImageRefused("The image is refused: it unpacks to more than Cloche takes.")

    def spend_entry(self) -> None:
        """Note one entry of a layer, or a folder that one implies. Raises ImageRefused."""
        self.entries -= 1
        if self.entries < 0:
            raise ImageRefused("The image is refused: it has more entries than Cloche takes.")

    def spend_text(self, count: int) -> None:
        """Note bytes of names that are kept. Raises ImageRefused when there are too many."""
        self.text -= count
        if self.text < 0:
            raise ImageRefused("The image is refused: its names are longer than Cloche takes.")

    def spend_steps(self, count: int) -> None:
        """Note the work of looking a path up. Raises ImageRefused when it is too much."""
        self.steps -= count
        if self.steps < 0:
            raise ImageRefused("The image is refused: its links lead further than Cloche goes.")

    def check_size(self, size: int) -> None:
        """Raise ImageRefused for a file that is larger than one may be."""
        if size > self.entry:
            raise ImageRefused(f"The image is refused: a file of it has {size} bytes.")


def shown(name: bytes, most: int = 120) -> str:
    """Return a name out of an image as a text that is safe to print."""
    text = name.decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:most])
