"""What a content is, by its first bytes: enough to say what a binary file was and became."""

from __future__ import annotations

import hashlib
from typing import Final

_SIGNS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"\x7fELF", "application/x-elf"),
    (b"MZ", "application/x-msdownload"),
    (b"\xca\xfe\xba\xbe", "application/java-vm or Mach-O"),
    (b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (b"\x00asm", "application/wasm"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"\x00\x01\x00\x00\x00", "font/ttf"),
    (b"OTTO", "font/otf"),
)
"""Magic numbers as the formats' own specifications give them."""

_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_BRANDS: Final = {b"avif": "image/avif", b"heic": "image/heic"}

UNKNOWN: Final = "application/octet-stream"


def kind_of(data: bytes) -> str:
    """Return the media type that the first bytes speak for; they prove nothing."""
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12], UNKNOWN)
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12], "video/mp4")
    if data[257:262] == b"ustar":
        return "application/x-tar"
    return next((kind for sign, kind in _SIGNS if data.startswith(sign)), UNKNOWN)


def described(data: bytes) -> str:
    """Return media type, size and SHA-256 of a content in one phrase."""
    noun = "byte" if len(data) == 1 else "bytes"
    return f"{kind_of(data)}, {len(data):,} {noun}, sha256 {hashlib.sha256(data).hexdigest()}"
