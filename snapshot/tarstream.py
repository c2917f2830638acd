"""Tar headers, written straight into bytes: `tarfile` takes longer than reading and hashing a file.

The dialect is GNU's: names are raw bytes of any length (a long one gets a record of its own in
front), sizes beyond 8 GiB are base 256. Times are whole seconds that fit squashfs (32 bits).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from snapshot.manifest import Kind

BLOCK: Final = 512
END: Final = bytes(2 * BLOCK)
"""The end of the archive."""

OWNER: Final = 1000
"""Uid and gid of the guest's unprivileged user."""

_NAME_BYTES: Final = 100
_OCTAL_LIMIT: Final = 8**11
_LATEST: Final = 2**32 - 1
_TYPES: Final[dict[Kind, bytes]] = {"file": b"0", "dir": b"5", "link": b"2"}
_LONG_NAME: Final = b"L"
_LONG_TARGET: Final = b"K"
_OWNERS: Final = b"%07o\0%07o\0" % (OWNER, OWNER)
_BLANK_SUM: Final = b"        "
_MAGIC: Final = b"ustar  \0"


def header(path: bytes, kind: Kind, mode: int, size: int, mtime_ns: int, target: bytes) -> bytes:
    """Make the blocks of one path; for a file, `size` bytes and `padding(size)` follow."""
    seconds = min(max(mtime_ns // 1_000_000_000, 0), _LATEST)
    result = b""
    if len(target) > _NAME_BYTES:
        result += _long(_LONG_TARGET, target)
    if len(path) > _NAME_BYTES:
        result += _long(_LONG_NAME, path)
    return result + _block(path, _TYPES[kind], mode, size, seconds, target)


def padding(size: int) -> bytes:
    """Make the zeros that fill the last block of `size` bytes."""
    return bytes(-size % BLOCK)


def _long(kind: bytes, text: bytes) -> bytes:
    block = _block(b"././@LongLink", kind, 0o644, len(text) + 1, 0, b"")
    return block + text + bytes(1) + padding(len(text) + 1)


def _block(path: bytes, kind: bytes, mode: int, size: int, seconds: int, target: bytes) -> bytes:
    length = b"%011o\0" % size if size < _OCTAL_LIMIT else b"\x80" + size.to_bytes(11, "big")
    front = b"%b%07o\0%b%b%011o\0" % (
        path[:_NAME_BYTES].ljust(_NAME_BYTES, b"\0"),
        mode,
        _OWNERS,
        length,
        seconds,
    )
    back = kind + target[:_NAME_BYTES].ljust(_NAME_BYTES, b"\0") + _MAGIC
    total = sum(front) + sum(_BLANK_SUM) + sum(back)
    return (front + b"%06o\0 " % total + back).ljust(BLOCK, b"\0")
