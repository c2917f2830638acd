"""The uncompressed kernel inside a bzImage, for machines that boot an ELF file through PVH.

Booting it directly saves the guest its own decompression, a second under software emulation. The
place of the payload is in the boot protocol's header (Documentation/x86/boot.rst: `setup_sects` at
0x1f1, `payload_offset` at 0x248, `payload_length` at 0x24c, from version 2.08 on).
"""

from __future__ import annotations

import lzma
import struct
import zlib

from vm.errors import BuildFailed
from vm.image.tools import unpacked

_SECTOR = 512
_WITH_TAIL = (0, 1)
"""The payload is followed by its size, which these tools call garbage, skip, and may end with 1."""

_LIMIT = 256 << 20
"""More than any distribution's kernel unpacks to."""


def extract_vmlinux(image: bytes) -> bytes:
    """Return the ELF file that the bzImage `image` carries.

    Raises BuildFailed when it is no bzImage or its compression is not known.
    """
    if image[0x202:0x206] != b"HdrS":
        raise BuildFailed("The distribution's kernel is not a bzImage.")
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (image[0x1F1] + 1) * _SECTOR + offset
    return _checked(_unpack(image[start : start + length]))


def _checked(kernel: bytes) -> bytes:
    if kernel[:4] != b"\x7fELF":
        raise BuildFailed("The distribution's kernel did not unpack to an ELF file.")
    return kernel


def _unpack(payload: bytes) -> bytes:
    if payload[:4] == b"\x7fELF":
        return payload
    if payload[:2] == b"\x1f\x8b":
        return zlib.decompressobj(31).decompress(payload, _LIMIT)
    if payload[:6] == b"\xfd7zXZ\x00":
        return lzma.LZMADecompressor().decompress(payload, _LIMIT)
    if payload[:4] == b"\x28\xb5\x2f\xfd":
        return unpacked(["zstd", "-dcq"], payload, _WITH_TAIL)
    if payload[:4] == b"\x02\x21\x4c\x18":
        return unpacked(["lz4", "-dcq"], payload, _WITH_TAIL)
    raise BuildFailed("The distribution's kernel is compressed in a way that is not known here.")
