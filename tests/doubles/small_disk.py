"""A file system of a few megabytes that can be filled to the last byte, for tests as root."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


class SmallDisk:
    """A mounted tmpfs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._filler = root / "filler"

    def fill(self) -> None:
        """Leave not one free byte."""
        descriptor = os.open(self._filler, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "wb", buffering=0) as filler, contextlib.suppress(OSError):
            while filler.write(b"x" * 4096):
                pass
        assert os.statvfs(self.root).f_bavail == 0

    def free(self) -> None:
        """Take back what `fill` took."""
        self._filler.unlink()

    def used(self) -> int:
        """How many bytes are taken."""
        found = os.statvfs(self.root)
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    def limit(self, size: int) -> None:
        """Let the disk hold `size` bytes from now on."""
        options = f"remount,size={size}"
        subprocess.run(["mount", "-o", options, str(self.root)], check=True, capture_output=True)


@contextlib.contextmanager
def small_disk(root: Path, size: str = "32m") -> Generator[SmallDisk]:
    """Mount a tmpfs at `root`; skips the test where this user may not mount."""
    root.mkdir(mode=0o700)
    words = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(root)]
    if os.geteuid() != 0 or subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a file system that can be filled")
    try:
        yield SmallDisk(root)
    finally:
        subprocess.run(["umount", "-l", str(root)], check=True)
