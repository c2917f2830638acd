"""The few things that are read from ELF files: needed libraries, the loader, a module's facts.

Only little-endian 64-bit files, which is all that the supported distributions ship for amd64.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from vm.errors import BuildFailed

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC = struct.Struct("<qQ")
_LOAD, _DYNAMIC_SEGMENT, _INTERP = 1, 2, 3
_NEEDED, _STRTAB = 1, 5


@dataclass(frozen=True, slots=True)
class _Segment:
    kind: int
    offset: int
    address: int
    size: int


def _header(data: bytes) -> tuple[int, ...]:
    if len(data) < _HEADER.size or data[:6] != b"\x7fELF\x02\x01":
        raise BuildFailed("A program of the distribution is not a 64-bit ELF file.")
    return _HEADER.unpack_from(data)[1:]


def _segments(data: bytes) -> list[_Segment]:
    _, _, _, _, start, _, _, _, size, count, *_ = _header(data)
    found: list[_Segment] = []
    for index in range(count):
        kind, _, offset, address, _, length, *_ = _PROGRAM.unpack_from(data, start + index * size)
        found.append(_Segment(kind, offset, address, length))
    return found


def _text(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode()


def needed(data: bytes) -> list[str]:
    """Return the names of the shared libraries that a program or library is linked to."""
    segments = _segments(data)
    dynamic = next((s for s in segments if s.kind == _DYNAMIC_SEGMENT), None)
    if dynamic is None:
        return []
    end = dynamic.offset + dynamic.size - dynamic.size % _DYNAMIC.size
    tags = list(_DYNAMIC.iter_unpack(data[dynamic.offset : end]))
    table = next(value for tag, value in tags if tag == _STRTAB)
    home = next(s for s in segments if s.kind == _LOAD and 0 <= table - s.address < s.size)
    strings = table - home.address + home.offset
    return [_text(data, strings + value) for tag, value in tags if tag == _NEEDED]


def interpreter(data: bytes) -> str:
    """Return the path of the loader that a program asks for, empty for a static one."""
    found = next((s for s in _segments(data) if s.kind == _INTERP), None)
    return _text(data, found.offset) if found else ""


def section(data: bytes, name: str) -> bytes:
    """Return the content of a section, empty when the file has none of that name."""
    _, _, _, _, _, start, _, _, _, _, size, count, names = _header(data)
    headers = [_SECTION.unpack_from(data, start + index * size) for index in range(count)]
    strings = headers[names][4]
    for label, _, _, _, offset, length, *_ in headers:
        if _text(data, strings + label) == name:
            return data[offset : offset + length]
    return b""


def module_facts(data: bytes) -> dict[str, list[str]]:
    """Return a kernel module's `.modinfo` (`depends`, `softdep`, `name`, …), values by key."""
    facts: dict[str, list[str]] = {}
    for pair in section(data, ".modinfo").split(b"\0"):
        key, separator, value = pair.decode(errors="replace").partition("=")
        if separator:
            facts.setdefault(key, []).append(value)
    return facts
