"""A layer's bytes: decompressed as they are read, hashed and counted, never written anywhere.

gzip is Python's own zlib; zstd is a program, which the standard library of Python 3.11 lacks.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from typing import IO, TYPE_CHECKING, Final, Protocol

from vm.errors import ImageRefused
from vm.image.tools import Watch, spawn

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Generator
    from pathlib import Path

    from vm.image.oci.limits import Budget

PIECE: Final = 256 << 10
"""Bytes that are handled at a time."""

ZSTD_WINDOW: Final = 128 << 20
"""Memory that a zstd stream may demand; the program's own default."""

ZSTD_SECONDS: Final = 1800.0
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class Bytes(Protocol):
    """Anything that gives bytes one piece after the other."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end."""
        ...


class Measured:
    """What was read so far, by count and by hash."""

    def __init__(self, inner: Bytes, budget: Budget) -> None:
        self._inner = inner
        self._budget = budget
        self._hash = hashlib.sha256()

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes. Raises ImageRefused beyond the budget."""
        data = self._inner.read(min(size, PIECE))
        self._budget.spend_bytes(len(data))
        self._hash.update(data)
        return data

    def digest(self) -> str:
        """Read to the end and return the digest of all, `sha256:…`."""
        while self.read(PIECE):
            continue
        return f"sha256:{self._hash.hexdigest()}"


class _Gzip:
    """One or more gzip members, one after the other."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._waiting = b""
        self._member = zlib.decompressobj(31)
        self._begun = False

    def read(self, size: int, /) -> bytes:
        while True:
            if self._member.eof and not self._next_member():
                return b""
            fed = self._waiting or self._file.read(PIECE)
            if not fed:
                raise ImageRefused("The image is refused: a layer of it ends in the middle.")
            try:
                data = self._member.decompress(fed, size)
            except zlib.error as error:
                raise ImageRefused(f"The image is refused: a layer is damaged ({error}).") from None
            self._waiting = self._member.unconsumed_tail
            if data:
                return data

    def _next_member(self) -> bool:
        """Begin what follows a member that ended; zeros are padding, as gzip takes them."""
        rest = self._member.unused_data.lstrip(b"\0")
        while not rest and (more := self._file.read(PIECE)):
            rest = more.lstrip(b"\0")
        if rest:
            self._member = zlib.decompressobj(31)
        self._waiting = rest
        return bool(rest)


@contextlib.contextmanager
def unpacked(path: Path, budget: Budget) -> Generator[Measured]:
    """Give the bytes of the layer in `path`, whatever it is packed with.

    Raises ImageRefused for what is damaged or unpacks to too much, HostLacks without zstd.
    """
    with path.open("rb", buffering=0) as file:  # a program reads on where we stand
        magic = file.read(4)
        file.seek(0)
        if magic == _ZSTD:
            with _zstd(file) as stream:
                yield Measured(stream, budget)
        else:
            yield Measured(_Gzip(file) if magic[:2] == _GZIP else file, budget)


class _Child:
    """The output of a program whose failure is an error of the one who reads it to its end."""

    def __init__(self, child: subprocess.Popen[bytes], watch: Watch) -> None:
        self._child = child
        self._watch = watch

    def read(self, size: int, /) -> bytes:
        assert self._child.stdout is not None
        data = self._child.stdout.read(size)
        if not data and self._child.wait() != 0:
            raise ImageRefused("The image is refused: a layer of it is damaged (zstd).")
        return data


@contextlib.contextmanager
def _zstd(file: IO[bytes]) -> Generator[_Child]:
    child = spawn(["zstd", "-dcq", f"--memory={ZSTD_WINDOW}"], stdin=file.fileno())
    watch = Watch(child, ZSTD_SECONDS)
    try:
        yield _Child(child, watch)
    finally:
        watch.close()


def file_digest(path: Path) -> str:
    """Return `sha256:…` of a file as it lies there."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
