from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.tarstream import BLOCK, END, header, padding

if TYPE_CHECKING:
    from snapshot.manifest import Kind

NAMES = st.binary(min_size=1, max_size=300).filter(
    lambda name: b"\0" not in name and not name.startswith(b"/") and not name.endswith(b"/")
)


def read_back(data: bytes) -> tarfile.TarInfo:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", encoding="utf-8") as archive:
        members = archive.getmembers()
    assert len(members) == 1
    return members[0]


@given(NAMES, st.integers(0, 0o777), st.binary(max_size=1500), st.integers(0, 2**32 - 1))
def test_files_are_what_tarfile_reads(path: bytes, mode: int, data: bytes, seconds: int) -> None:
    stream = header(path, "file", mode, len(data), seconds * 1_000_000_000 + 5, b"") + data
    stream += padding(len(data)) + END

    member = read_back(stream)

    assert len(stream) % BLOCK == 0
    assert member.isreg()
    assert member.name.encode("utf-8", "surrogateescape") == path
    assert (member.mode, member.size, member.mtime) == (mode, len(data), seconds)
    assert (member.uid, member.gid) == (1000, 1000)


@given(NAMES, NAMES)
def test_links_are_what_tarfile_reads(path: bytes, target: bytes) -> None:
    member = read_back(header(path, "link", 0o777, 0, 0, target) + END)

    assert member.issym()
    assert member.name.encode("utf-8", "surrogateescape") == path
    assert member.linkname.encode("utf-8", "surrogateescape") == target


@pytest.mark.parametrize("length", [99, 100, 101, 255, 511, 512, 513, 5000])
@pytest.mark.parametrize("kind", ["file", "dir"])
def test_names_of_any_length(length: int, kind: Kind) -> None:
    path = b"n" * length

    assert read_back(header(path, kind, 0o755, 0, 0, b"") + END).name == path.decode()


@pytest.mark.parametrize("size", [8**11 - 1, 8**11, 2**40])
def test_sizes_beyond_octal(size: int) -> None:
    block = header(b"big", "file", 0o644, size, 0, b"")

    assert tarfile.TarInfo.frombuf(block, "utf-8", "strict").size == size


@pytest.mark.parametrize(("time_ns", "seconds"), [(-5, 0), (2**70, 2**32 - 1)])
def test_times_outside_of_squashfs_are_bent(time_ns: int, seconds: int) -> None:
    assert read_back(header(b"a", "file", 0o644, 0, time_ns, b"") + END).mtime == seconds
