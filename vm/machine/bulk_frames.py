"""What goes over the port `cloche.bulk`: frames, their checks, and the values made of them.

Frames, both ways: `u32 length | u8 type | payload`, little endian, length counts type and payload
and is at most 1 MiB. Nothing here reads or writes a link.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from vm.errors import GuestProtocol, VMError
from vm.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vm.machine.entries import UpperEntry

MAX_TEXT = 4096
"""Bytes of explanation that are kept from an `x` frame."""

LENGTH = struct.Struct("<I")
"""What stands before a frame."""

DATA = struct.Struct("<I")
"""The id before a piece of content."""

END = struct.Struct("<IQqq")
"""End of a file: id, size, mtime and ctime in nanoseconds."""

ERROR = struct.Struct("<II")
"""Id and errno before the text of an error."""

ACTIVITY = struct.Struct("<BQ")
"""Whether a program waits, and microseconds of processor time."""

LIST_END = struct.Struct("<IB")
"""How many entries were sent, and whether a cap cut the list short."""


class GuestError(VMError):
    """The guest could not do what it was asked; the link goes on. `errno` is the guest's."""

    code = "guest-error"
    way_out = "Try again; when it fails again: cloche logs ID"

    def __init__(self, errno: int, text: str) -> None:
        super().__init__(f"The guest answered: {text or 'error'} (errno {errno}).")
        self.errno = errno


class UpperEntries(Protocol):
    """Entries that are walked over as often as they are needed."""

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def __iter__(self) -> Iterator[UpperEntry]:
        """Yield them in their order."""
        ...

    def clear(self) -> None:
        """Let go of them."""
        ...


@dataclass(frozen=True, slots=True)
class Listing:
    """Entries of an upper dir, parents before children; `truncated` when a cap cut it short.

    `digest` names the list as it was sent. `known` says that it is the one that was known already:
    then it was not taken apart, and there are no entries.
    """

    entries: UpperEntries
    truncated: bool
    digest: bytes = b""
    known: bool = False


@dataclass(frozen=True, slots=True)
class Fetched:
    """The end of a file's content: what the guest saw after the last byte was read.

    `received` is what arrived here; it differs from `size` when the file changed meanwhile.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    received: int


@dataclass(frozen=True, slots=True)
class Activity:
    """What the agent is busy with, as PID 1 sees it."""

    waits: bool
    """Whether a program that the agent started has its terminal and reads no single keys."""
    cpu_s: float
    """Seconds of processor time that the agent and its programs have used so far."""


def frame(kind: bytes, payload: bytes) -> bytes:
    """Return a frame of one letter and what goes with it."""
    return LENGTH.pack(len(payload) + 1) + kind + payload


def unpack(shape: struct.Struct, payload: bytes) -> tuple[int, ...]:
    """Return the numbers of a payload. Raises GuestProtocol when it has another length."""
    if len(payload) != shape.size:
        raise GuestProtocol("The guest sent a frame of a wrong size.")
    return shape.unpack(payload)


def list_end(payload: bytes, count: int) -> bool:
    """Return whether the guest cut a list short. Raises GuestProtocol for another count."""
    said, truncated = unpack(LIST_END, payload)
    if said != count or truncated > 1:
        raise GuestProtocol(f"The guest sent {count} entries and says that they are {said}.")
    return bool(truncated)


def guest_error(payload: bytes, wanted: int | None) -> VMError:
    """Return the error that a frame tells of; GuestProtocol when it is about another request."""
    if len(payload) < ERROR.size:
        return GuestProtocol("The guest sent a frame of a wrong size.")
    request, errno = ERROR.unpack_from(payload)
    if wanted is not None and request != wanted:
        return GuestProtocol("The guest answered another request.")
    text = payload[ERROR.size :][:MAX_TEXT].decode(errors="replace")
    return GuestError(errno, printable(text))
