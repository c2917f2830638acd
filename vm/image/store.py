"""Images in the store: `store/images/<name>/` with its `image.json`, found and checked cheaply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ImageSet:
    """One built image: everything that a guest boots from, by path."""

    name: str
    kernel: Path
    """The distribution's bzImage."""
    vmlinux: Path
    """The same kernel as an uncompressed ELF file, for machines that boot PVH (q35 and microvm)."""
    initramfs: Path
    """`toolkit.cpio.gz`; never boots alone, see `write_initrd`."""
    base: Path
    """`base.squashfs`, the root of the agent's world."""
    digest: str
    """blake3 (hex) over the digests of the four files; changes whenever any of them does."""
    kernel_release: str
    """As `uname -r` prints it in the guest."""


def find_image(store: Path, name: str = "base") -> ImageSet:
    """Return the image called `name`, checked by recorded sizes.

    Raises ImageMissing (hint: the build command) when it is absent, damaged or of an old format.
    """
    raise NotImplementedError
